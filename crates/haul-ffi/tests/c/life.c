/* Life cycles: everything is closed in each order, at each stage, and what is left of it behaves. */
#include "check.h"

enum { SERVER, CLIENT, NEAR, FAR, STREAM, PEER_STREAM, THINGS };

/* One exchange; then everything is closed in the order that `number` stands for among all there are. */
static void close_in_order(unsigned number) {
    struct pair pair = connected();
    haul_t things[THINGS];
    things[SERVER] = pair.server;
    things[CLIENT] = pair.client;
    things[NEAR] = pair.near;
    things[FAR] = pair.far;
    things[STREAM] = haul_stream_open(pair.near, HAUL_BIDI);
    EXPECT(things[STREAM] > 0);
    send_all(things[STREAM], "hello", 5);
    things[PEER_STREAM] = haul_stream_accept(pair.far, HAUL_BIDI);
    EXPECT(things[PEER_STREAM] > 0);
    char buffer[8];
    size_t got = 0;
    while (got < 5) {
        int64_t more = haul_recv(things[PEER_STREAM], buffer + got, sizeof buffer - got);
        EXPECT(more > 0);
        got += (size_t)more;
    }
    EXPECT(got == 5 && memcmp(buffer, "hello", 5) == 0);
    int left[THINGS];
    for (int i = 0; i < THINGS; i++) {
        left[i] = i;
    }
    for (int count = THINGS; count > 0; count--) {
        int at = (int)(number % (unsigned)count);
        number /= (unsigned)count;
        haul_t thing = things[left[at]];
        EXPECT(haul_close(thing) == 0);
        REFUSED(haul_close(thing), HAUL_EHANDLE, "closed");
        left[at] = left[count - 1];
        /* Whatever is left answers, one way or another, and does not crash. */
        for (int i = 0; i < count - 1; i++) {
            haul_setopt(things[left[i]], HAUL_OPT_RCVTIMEO, 0);
            haul_setopt(things[left[i]], HAUL_OPT_SNDTIMEO, 0);
            haul_send(things[left[i]], "x", 1);
            haul_recv(things[left[i]], buffer, sizeof buffer);
            haul_accept(things[left[i]], NULL, NULL);
            haul_ready(things[left[i]], HAUL_IN | HAUL_OUT | HAUL_HUP);
        }
    }
}

/* What a side hears of the other's closing. */
static void reasons(void) {
    struct pair pair = connected();
    haul_t stream = haul_stream_open(pair.near, HAUL_BIDI);
    send_all(stream, "x", 1);
    haul_t far = haul_stream_accept(pair.far, HAUL_BIDI);
    EXPECT(far > 0);
    EXPECT(haul_close_with(pair.far, 77, "enough\nfor today") == 0);
    REFUSED(haul_closed(pair.near), HAUL_EPEERCLOSED, "enough");
    EXPECT(haul_error_peer_code() == 77);
    EXPECT(haul_fault(haul_error_code()) == HAUL_FAULT_PEER);
    EXPECT(strchr(haul_error_message(), '\n') == NULL);
    char byte;
    REFUSED(haul_recv(stream, &byte, 1), HAUL_EPEERCLOSED, "code 77");
    REFUSED(haul_recv(stream, &byte, 1), HAUL_EPEERCLOSED, "code 77");
    REFUSED(haul_stream_open(pair.near, HAUL_UNI), HAUL_EPEERCLOSED, "enough");
    /* This side's own. What had come before the end can still be read. */
    EXPECT(haul_recv(far, &byte, 1) == 1 && byte == 'x');
    REFUSED(haul_recv(far, &byte, 1), HAUL_ECLOSED, "this side");
    EXPECT(haul_close(far) == 0 && haul_close(stream) == 0);
    pair.far = haul_endpoint();
    part(&pair);
}

/* Nobody accepts: the client goes as soon as the server has no patience any more, in its handshake or after it. */
static void kept_waiting(void) {
    char fingerprint[HAUL_FINGERPRINT_SIZE];
    struct sockaddr_in address;
    haul_t server = listening_for(300, &address, fingerprint), client = haul_endpoint();
    EXPECT(haul_trust_fingerprint(client, fingerprint) == 0);
    be_patient(client);
    haul_t near = haul_connect(client, (struct sockaddr *)&address, sizeof address);
    if (near > 0) {
        /* On a busy machine the server may have forgotten it before the client's last words of the handshake came. */
        int end = haul_closed(near);
        EXPECT(end == HAUL_EPEERCLOSED ? strstr(haul_error_message(), "in time") != NULL : end == HAUL_ELOST);
    }
    haul_setopt(server, HAUL_OPT_RCVTIMEO, 0);
    REFUSED(haul_accept(server, NULL, NULL), HAUL_EAGAIN, "without waiting");
    EXPECT((near < 0 || haul_close(near) == 0) && haul_close(client) == 0 && haul_close(server) == 0);
}

/* Halves: ended, reset, stopped, closed without being ended. */
static void halves(void) {
    struct pair pair = connected();
    char buffer[64];
    /* Ended: the peer reads to the end, and this side knows that it has come. */
    haul_t send = haul_stream_open(pair.near, HAUL_UNI);
    REFUSED(haul_recv(send, buffer, 1), HAUL_ESTATE, "only sends");
    REFUSED(haul_flush(send), HAUL_ESTATE, "haul_shutdown");
    send_all(send, "all of it", 9);
    EXPECT(haul_shutdown(send, HAUL_SHUT_WR) == 0);
    EXPECT(haul_shutdown(send, HAUL_SHUT_WR) == 0);
    REFUSED(haul_send(send, "more", 4), HAUL_ESTATE, "haul_shutdown");
    EXPECT(haul_flush(send) == 0);
    haul_t receive = haul_stream_accept(pair.far, HAUL_UNI);
    REFUSED(haul_send(receive, "x", 1), HAUL_ESTATE, "only receives");
    EXPECT(read_to_end(receive, buffer, sizeof buffer) == 9 && memcmp(buffer, "all of it", 9) == 0);
    EXPECT(haul_recv(receive, buffer, 1) == 0);
    EXPECT(haul_close(send) == 0 && haul_close(receive) == 0);
    /* Reset with a number. */
    send = haul_stream_open(pair.near, HAUL_UNI);
    send_all(send, "half", 4);
    receive = haul_stream_accept(pair.far, HAUL_UNI);
    EXPECT(haul_reset(send, 5) == 0);
    REFUSED(haul_send(send, "x", 1), HAUL_ESTATE, "reset");
    int64_t got;
    while ((got = haul_recv(receive, buffer, sizeof buffer)) > 0) {
    }
    EXPECT(got == HAUL_ERESET && haul_error_peer_code() == 5);
    REFUSED(haul_recv(receive, buffer, 1), HAUL_ERESET, "code 5");
    EXPECT(haul_close(send) == 0 && haul_close(receive) == 0);
    /* Closed in the middle: never taken for an end. */
    send = haul_stream_open(pair.near, HAUL_UNI);
    send_all(send, "half", 4);
    receive = haul_stream_accept(pair.far, HAUL_UNI);
    EXPECT(haul_close(send) == 0);
    while ((got = haul_recv(receive, buffer, sizeof buffer)) > 0) {
    }
    EXPECT(got == HAUL_ERESET);
    EXPECT(haul_close(receive) == 0);
    /* Stopped: the sender is told. */
    send = haul_stream_open(pair.near, HAUL_UNI);
    send_all(send, "unwanted", 8);
    receive = haul_stream_accept(pair.far, HAUL_UNI);
    EXPECT(haul_stop(receive, 9) == 0);
    EXPECT(haul_recv(receive, buffer, 1) == 0);
    EXPECT(haul_shutdown(send, HAUL_SHUT_WR) == 0 || haul_error_code() == HAUL_ESTOPPED);
    REFUSED(haul_flush(send), HAUL_ESTOPPED, "code 9");
    EXPECT(haul_error_peer_code() == 9);
    EXPECT(haul_close(send) == 0 && haul_close(receive) == 0);
    part(&pair);
}

/* Two users of the library in one program: the first one's end is not the second one's. */
static void twice_started(void) {
    EXPECT(haul_startup() == 0);
    haul_t endpoint = haul_endpoint();
    EXPECT(haul_cleanup() == 0);
    EXPECT(haul_trust_anyone(endpoint) == 0);
    EXPECT(haul_close(endpoint) == 0);
}

int main(int count, char **arguments) {
    unsigned step = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    EXPECT(strcmp(haul_version(), "") != 0);
    REFUSED(haul_endpoint(), HAUL_ESTARTUP, "haul_startup");
    EXPECT(haul_startup() == 0);
    for (unsigned number = 0; number < 720; number += step) {
        close_in_order(number);
    }
    reasons();
    kept_waiting();
    halves();
    twice_started();
    /* Everything that is still open ends with the library, and no number of before is one of after. */
    struct pair pair = connected();
    haul_t stream = haul_stream_open(pair.near, HAUL_BLOCKS);
    struct haul_block block;
    EXPECT(haul_block_alloc(stream, 100, &block) == 0);
    EXPECT(haul_fd(pair.far, HAUL_IN) >= 0);
    EXPECT(haul_cleanup() == 0);
    REFUSED(haul_cleanup(), HAUL_ESTARTUP, "haul_startup");
    REFUSED(haul_close(stream), HAUL_ESTARTUP, "haul_startup");
    EXPECT(haul_startup() == 0);
    REFUSED(haul_close(stream), HAUL_EHANDLE, "closed");
    REFUSED(haul_block_free(&block), HAUL_EHANDLE, "closed");
    EXPECT(haul_cleanup() == 0);
    return 0;
}
