/* Waiting for many things: one thread, no wait but in poll(2), epoll(7) or haul_poll(). */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"

static void nonblocking(haul_t handle) {
    EXPECT(haul_setopt(handle, HAUL_OPT_SNDTIMEO, 0) == 0 && haul_setopt(handle, HAUL_OPT_RCVTIMEO, 0) == 0);
}

/* Waits in poll(2) until one of the events is there. */
static int await(haul_t handle, int events) {
    struct pollfd one = {.fd = haul_fd(handle, events), .events = POLLIN};
    EXPECT(one.fd >= 0);
    for (;;) {
        int ready = haul_ready(handle, events);
        EXPECT(ready >= 0);
        if (ready) {
            return ready;
        }
        EXPECT(poll(&one, 1, 100000) == 1);
    }
}

static int is_readable(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static void by_descriptors(void) {
    struct pair pair = endpoints();
    nonblocking(pair.server);
    nonblocking(pair.client);
    REFUSED(haul_accept(pair.server, NULL, NULL), HAUL_EAGAIN, "without waiting");
    EXPECT(haul_ready(pair.server, HAUL_IN) == 0);
    pair.near = haul_connect_start(pair.client, (struct sockaddr *)&pair.address, sizeof pair.address);
    EXPECT(pair.near > 0);
    int decided = haul_connect_finish(pair.near);
    EXPECT(decided == 0 || decided == HAUL_EAGAIN);
    EXPECT(await(pair.near, HAUL_OUT) == HAUL_OUT);
    EXPECT(haul_connect_finish(pair.near) == 0);
    EXPECT(await(pair.server, HAUL_IN) == HAUL_IN);
    EXPECT(haul_ready(pair.server, HAUL_IN) == HAUL_IN);
    pair.far = haul_accept(pair.server, NULL, NULL);
    EXPECT(pair.far > 0);
    REFUSED(haul_accept(pair.server, NULL, NULL), HAUL_EAGAIN, "without waiting");

    /* A stream's descriptor is quiet until something comes, readable as long as something is there, and quiet again. */
    haul_t stream = haul_stream_open(pair.near, HAUL_BIDI);
    EXPECT(stream > 0 && haul_ready(stream, HAUL_IN | HAUL_OUT) == HAUL_OUT);
    REFUSED(haul_stream_accept(pair.far, HAUL_BIDI), HAUL_EAGAIN, "without waiting");
    send_all(stream, "ab", 2);
    EXPECT(await(pair.far, HAUL_IN) == HAUL_IN);
    haul_t far = haul_stream_accept(pair.far, HAUL_BIDI);
    EXPECT(far > 0 && haul_ready(pair.far, HAUL_IN) == 0);
    EXPECT(await(far, HAUL_IN) == HAUL_IN);
    int fd = haul_fd(far, HAUL_IN);
    EXPECT(is_readable(fd) && is_readable(fd) && fd == haul_fd(far, HAUL_IN));
    char buffer[8];
    EXPECT(haul_recv(far, buffer, 1) == 1 && buffer[0] == 'a');
    EXPECT(haul_ready(far, HAUL_IN) == HAUL_IN && is_readable(fd));
    EXPECT(haul_recv(far, buffer, sizeof buffer) == 1 && buffer[0] == 'b');
    REFUSED(haul_recv(far, buffer, sizeof buffer), HAUL_EAGAIN, "without waiting");
    EXPECT(haul_ready(far, HAUL_IN) == 0 && !is_readable(fd));
    /* The end is something to receive. */
    EXPECT(haul_shutdown(stream, HAUL_SHUT_WR) == 0);
    EXPECT(await(far, HAUL_IN) == HAUL_IN && haul_recv(far, buffer, 1) == 0 && haul_recv(far, buffer, 1) == 0);

    /* A sender that has filled all there is hears of room again. */
    haul_t full = haul_stream_open(pair.near, HAUL_UNI);
    static char chunk[1 << 20];
    int64_t sent, total = 0;
    /* Acknowledgements make room for some time: it is full when none has come for a while, as nobody reads. */
    struct haul_pollfd room = {full, HAUL_OUT, 0};
    do {
        while ((sent = haul_send(full, chunk, sizeof chunk)) > 0) {
            total += sent;
        }
        EXPECT(sent == HAUL_EAGAIN && total > 0);
    } while (haul_poll(&room, 1, 500) == 1);
    fd = haul_fd(full, HAUL_OUT);
    EXPECT(await(pair.far, HAUL_IN) == HAUL_IN);
    haul_t drain = haul_stream_accept(pair.far, HAUL_UNI);
    /* What is there may have been read before the credit for it is back: either is waited for. */
    struct haul_pollfd either[] = {{full, HAUL_OUT, 0}, {drain, HAUL_IN, 0}};
    while (haul_poll(either, 2, 10000) > 0 && either[0].revents == 0) {
        EXPECT(haul_recv(drain, chunk, sizeof chunk) > 0);
    }
    EXPECT(either[0].revents == HAUL_OUT && haul_ready(full, HAUL_OUT) == HAUL_OUT);
    EXPECT(is_readable(fd) && haul_send(full, "x", 1) == 1);

    /* Blocks. */
    haul_t blocks = haul_stream_open(pair.near, HAUL_BLOCKS);
    EXPECT(await(blocks, HAUL_OUT) == HAUL_OUT && haul_block_send(blocks, "block", 5) == 0);
    haul_t in = 0;
    for (;;) {
        EXPECT(await(pair.far, HAUL_IN) == HAUL_IN);
        in = haul_stream_accept(pair.far, HAUL_BLOCKS);
        if (in > 0) {
            break;
        }
        EXPECT(in == HAUL_EAGAIN);
    }
    EXPECT(await(in, HAUL_IN) == HAUL_IN);
    struct haul_block block;
    EXPECT(haul_block_recv(in, &block) == 1 && memcmp(block.data, "block", 5) == 0 && haul_block_free(&block) == 0);
    REFUSED(haul_block_recv(in, &block), HAUL_EAGAIN, "without waiting");

    /* The end of a connection. */
    EXPECT(haul_ready(pair.near, HAUL_HUP) == 0);
    REFUSED(haul_closed(pair.near), HAUL_EAGAIN, "without waiting");
    fd = haul_fd(pair.near, HAUL_HUP);
    EXPECT(haul_close_with(pair.far, 3, "over") == 0);
    EXPECT(await(pair.near, HAUL_HUP) == HAUL_HUP);
    REFUSED(haul_closed(pair.near), HAUL_EPEERCLOSED, "over");
    haul_t open[] = {stream, far, full, drain, blocks, in, pair.near, pair.client, pair.server};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        EXPECT(haul_close(open[i]) == 0);
    }
    EXPECT(!is_readable(fd) || haul_error_code() != 0);
}

/* Many connections in one epoll(7), edge after edge, with a server that echoes. */
static void by_epoll(void) {
    enum { CLIENTS = 12 };
    struct pair pair = endpoints();
    nonblocking(pair.server);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    haul_t watched[2 + 4 * CLIENTS];
    size_t count = 0;
    haul_t near[CLIENTS], stream[CLIENTS];
#define WATCH(handle)                                                                                          \
    do {                                                                                                       \
        watched[count] = (handle);                                                                             \
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = count++};                                   \
        EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, haul_fd(watched[count - 1], HAUL_IN), &event) == 0);            \
    } while (0)
    WATCH(pair.server);
    for (int i = 0; i < CLIENTS; i++) {
        near[i] = haul_connect(pair.client, (struct sockaddr *)&pair.address, sizeof pair.address);
        stream[i] = haul_stream_open(near[i], HAUL_BIDI);
        char text[32];
        int length = snprintf(text, sizeof text, "this is client %d", i);
        send_all(stream[i], text, (size_t)length);
        EXPECT(haul_shutdown(stream[i], HAUL_SHUT_WR) == 0);
    }
    int answered = 0;
    while (answered < CLIENTS) {
        struct epoll_event events[8];
        int ready = epoll_wait(epoll, events, 8, 100000);
        EXPECT(ready > 0);
        for (int i = 0; i < ready; i++) {
            haul_t handle = watched[events[i].data.u64];
            if (!(haul_ready(handle, HAUL_IN) & HAUL_IN)) {
                continue;
            }
            haul_t made = handle == pair.server ? haul_accept(handle, NULL, NULL) : haul_stream_accept(handle, HAUL_BIDI);
            if (made > 0) {
                WATCH(made);
                continue;
            }
            EXPECT(made == HAUL_EAGAIN || made == HAUL_EHANDLE);
            char text[64];
            int64_t got = made == HAUL_EHANDLE ? haul_recv(handle, text, sizeof text) : HAUL_EAGAIN;
            if (got > 0) {
                send_all(handle, text, (size_t)got);
            } else if (got == 0) {
                EXPECT(haul_shutdown(handle, HAUL_SHUT_WR) == 0);
                EXPECT(haul_fd(handle, 0) >= 0);
                answered++;
            }
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        char wanted[32], got[32];
        int length = snprintf(wanted, sizeof wanted, "this is client %d", i);
        EXPECT(read_to_end(stream[i], got, sizeof got) == (size_t)length && memcmp(wanted, got, (size_t)length) == 0);
        EXPECT(haul_close(stream[i]) == 0 && haul_close(near[i]) == 0);
    }
    for (size_t i = 0; i < count; i++) {
        EXPECT(haul_close(watched[i]) == 0);
    }
    EXPECT(haul_close(pair.client) == 0);
    close(epoll);
}

static void by_haul_poll(void) {
    struct pair pair = connected();
    haul_t a = haul_stream_open(pair.near, HAUL_BIDI), b = haul_stream_open(pair.near, HAUL_BIDI);
    struct haul_pollfd all[] = {{a, HAUL_IN, -1}, {0, HAUL_IN, -1}, {b, HAUL_IN, -1}};
    EXPECT(haul_poll(all, 3, 0) == 0 && haul_poll(all, 3, 30) == 0);
    EXPECT(all[0].revents == 0 && all[1].revents == 0 && all[2].revents == 0);
    send_all(b, "?", 1);
    haul_t far = haul_stream_accept(pair.far, HAUL_BIDI);
    /* Of the two the second was used first: the far side has both. */
    haul_t other = haul_stream_accept(pair.far, HAUL_BIDI);
    struct haul_pollfd asked[] = {{far, HAUL_IN, 0}, {other, HAUL_IN, 0}};
    EXPECT(haul_poll(asked, 2, -1) == 1);
    haul_t answers = asked[0].revents ? far : other;
    send_all(answers, "!", 1);
    EXPECT(haul_poll(all, 3, -1) == 1);
    EXPECT(all[0].revents == 0 && all[2].revents == HAUL_IN);
    char byte;
    EXPECT(haul_recv(b, &byte, 1) == 1 && byte == '!');
    all[1].handle = 4711;
    EXPECT(haul_poll(all, 3, -1) == 1 && all[1].revents == HAUL_EHANDLE);
    haul_t open[] = {a, b, far, other};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        EXPECT(haul_close(open[i]) == 0);
    }
    part(&pair);
}

/* An attempt that fails, and one that is given up. */
static void attempts(void) {
    haul_t client = haul_endpoint();
    EXPECT(haul_trust_anyone(client) == 0 && haul_setopt(client, HAUL_OPT_CONNTIMEO, 100) == 0);
    struct sockaddr_in nobody = loopback(9);
    haul_t attempt = haul_connect_start(client, (struct sockaddr *)&nobody, sizeof nobody);
    REFUSED(haul_connect_finish(attempt), HAUL_EAGAIN, "without waiting");
    REFUSED(haul_stream_open(attempt, HAUL_BIDI), HAUL_ESTATE, "still being made");
    EXPECT(await(attempt, HAUL_OUT) == HAUL_OUT);
    REFUSED(haul_connect_finish(attempt), HAUL_EUNREACHED, " s: nobody listens");
    REFUSED(haul_connect_finish(attempt), HAUL_EUNREACHED, " s: nobody listens");
    REFUSED(haul_stream_open(attempt, HAUL_BIDI), HAUL_EUNREACHED, "no answer");
    EXPECT(haul_ready(attempt, HAUL_HUP) == HAUL_HUP);
    EXPECT(haul_close(attempt) == 0);
    attempt = haul_connect_start(client, (struct sockaddr *)&nobody, sizeof nobody);
    EXPECT(haul_close(attempt) == 0 && haul_close(client) == 0);
}

int main(void) {
    EXPECT(haul_startup() == 0);
    by_descriptors();
    by_epoll();
    by_haul_poll();
    attempts();
    EXPECT(haul_cleanup() == 0);
    return 0;
}
