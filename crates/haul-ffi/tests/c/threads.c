/* Threads that share handles: send and receive at once, wait while another closes, and everything at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 200 };

static void *echo(void *argument) {
    haul_t stream = *(haul_t *)argument;
    char buffer[4096];
    int64_t got;
    while ((got = haul_recv(stream, buffer, sizeof buffer)) > 0) {
        send_all(stream, buffer, (size_t)got);
    }
    EXPECT(got == 0 && haul_shutdown(stream, HAUL_SHUT_WR) == 0 && haul_flush(stream) == 0);
    return NULL;
}

static void *send_much(void *argument) {
    haul_t stream = *(haul_t *)argument;
    char data[1000];
    for (int i = 0; i < ROUNDS; i++) {
        memset(data, i, sizeof data);
        send_all(stream, data, sizeof data);
    }
    EXPECT(haul_shutdown(stream, HAUL_SHUT_WR) == 0);
    return NULL;
}

/* One thread sends on a stream while another receives from it; the echo is whole and in order. */
static void both_ways(void) {
    struct pair pair = connected();
    haul_t near[THREADS], far[THREADS];
    pthread_t senders[THREADS], echoes[THREADS];
    for (int i = 0; i < THREADS; i++) {
        near[i] = haul_stream_open(pair.near, HAUL_BIDI);
        EXPECT(near[i] > 0);
        EXPECT(pthread_create(&senders[i], NULL, send_much, &near[i]) == 0);
        far[i] = haul_stream_accept(pair.far, HAUL_BIDI);
        EXPECT(pthread_create(&echoes[i], NULL, echo, &far[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        static char back[ROUNDS * 1000 + 1];
        EXPECT(read_to_end(near[i], back, sizeof back) == ROUNDS * 1000);
        for (int at = 0; at < ROUNDS * 1000; at++) {
            EXPECT(back[at] == (char)(at / 1000));
        }
        EXPECT(pthread_join(senders[i], NULL) == 0 && pthread_join(echoes[i], NULL) == 0);
        EXPECT(haul_close(near[i]) == 0 && haul_close(far[i]) == 0);
    }
    part(&pair);
}

struct waiting {
    haul_t handle;
    int kind;
    int64_t got;
    atomic_int waits;
};

static void *wait_for(void *argument) {
    struct waiting *waiting = argument;
    char byte;
    struct haul_block block;
    atomic_store(&waiting->waits, 1);
    switch (waiting->kind) {
    case 0: waiting->got = haul_accept(waiting->handle, NULL, NULL); break;
    case 1: waiting->got = haul_stream_accept(waiting->handle, HAUL_BIDI); break;
    case 2: waiting->got = haul_recv(waiting->handle, &byte, 1); break;
    case 3: waiting->got = haul_block_recv(waiting->handle, &block); break;
    case 4: waiting->got = haul_closed(waiting->handle); break;
    case 5: {
        struct haul_pollfd one = {waiting->handle, HAUL_IN, 0};
        EXPECT(haul_poll(&one, 1, -1) == 1);
        waiting->got = one.revents;
        break;
    }
    }
    return NULL;
}

/* A handle that is closed lets go whoever waits there. */
static void closed_while_waiting(void) {
    struct pair pair = connected();
    haul_t quiet = haul_stream_open(pair.near, HAUL_BIDI), polled = haul_stream_open(pair.near, HAUL_BIDI);
    haul_t out = haul_stream_open(pair.far, HAUL_BLOCKS);
    EXPECT(haul_block_send(out, "x", 1) == 0);
    haul_t blocks = haul_stream_accept(pair.near, HAUL_BLOCKS);
    struct haul_block block;
    EXPECT(haul_block_recv(blocks, &block) == 1 && haul_block_free(&block) == 0);
    struct waiting all[] = {
        {.handle = pair.server, .kind = 0}, {.handle = pair.near, .kind = 1}, {.handle = quiet, .kind = 2},
        {.handle = blocks, .kind = 3},      {.handle = pair.far, .kind = 4},  {.handle = polled, .kind = 5},
    };
    int order[] = {0, 2, 3, 5, 1, 4};
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        EXPECT(pthread_create(&threads[i], NULL, wait_for, &all[i]) == 0);
    }
    for (int i = 0; i < 6; i++) {
        while (!atomic_load(&all[i].waits)) {
        }
    }
    /* Most of them are asleep by then; the test holds for those that are not. */
    usleep(50000);
    for (int i = 0; i < 6; i++) {
        int at = order[i];
        EXPECT(haul_close(all[at].handle) == 0);
        EXPECT(pthread_join(threads[at], NULL) == 0);
        /* What the far side waits for may come before its own end: the near one was closed before it. */
        EXPECT(all[at].got == HAUL_ECLOSED || all[at].got == HAUL_EHANDLE || (at == 4 && all[at].got == HAUL_EPEERCLOSED));
    }
    EXPECT(haul_close(out) == 0 && haul_close(pair.client) == 0);
}

static atomic_int stop;
static _Atomic haul_t shared[32];

/* Whatever comes, on handles that others close at the same time. */
static void *anything(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument * 2654435761u + 1;
    char buffer[256];
    struct haul_block block;
    while (!atomic_load(&stop)) {
        random = random * 1664525u + 1013904223u;
        haul_t handle = atomic_load(&shared[(random >> 8) % 32]);
        switch (random >> 24 & 15) {
        case 0: haul_send(handle, buffer, 100); break;
        case 1: haul_recv(handle, buffer, sizeof buffer); break;
        case 2: haul_ready(handle, HAUL_IN | HAUL_OUT | HAUL_HUP); break;
        case 3: haul_fd(handle, HAUL_IN); break;
        case 4: atomic_store(&shared[(random >> 16) % 32], haul_stream_open(handle, (int)(random >> 4) % 3)); break;
        case 5: atomic_store(&shared[(random >> 16) % 32], haul_stream_accept(handle, (int)(random >> 4) % 3)); break;
        case 6: haul_shutdown(handle, (int)(random >> 4) % 3); break;
        case 7: haul_flush(handle); break;
        case 8: haul_block_send(handle, buffer, 100); break;
        case 9:
            if (haul_block_recv(handle, &block) == 1) {
                haul_block_free(&block);
            }
            break;
        case 10:
            if (haul_block_alloc(handle, 100, &block) == 0) {
                memset(block.data, 1, 100);
                block.length = 100;
                if (haul_block_submit(handle, &block) < 0) {
                    haul_block_free(&block);
                }
            }
            break;
        case 11: haul_close(handle); break;
        case 12: haul_reset(handle, 1); break;
        case 13: haul_stop(handle, 0); break;
        default: haul_setopt(handle, HAUL_OPT_RATE_LIMIT, 0); break;
        }
    }
    return NULL;
}

static void everything_at_once(int milliseconds) {
    for (int round = 0; round < 3; round++) {
        struct pair pair = endpoints();
        EXPECT(haul_setopt(pair.client, HAUL_OPT_SNDTIMEO, 0) == 0 && haul_setopt(pair.client, HAUL_OPT_RCVTIMEO, 0) == 0);
        pair.near = haul_connect(pair.client, (struct sockaddr *)&pair.address, sizeof pair.address);
        pair.far = haul_accept(pair.server, NULL, NULL);
        EXPECT(haul_setopt(pair.far, HAUL_OPT_SNDTIMEO, 0) == 0 && haul_setopt(pair.far, HAUL_OPT_RCVTIMEO, 0) == 0);
        for (int i = 0; i < 32; i++) {
            atomic_store(&shared[i], i % 2 ? pair.near : pair.far);
        }
        atomic_store(&stop, 0);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            EXPECT(pthread_create(&threads[i], NULL, anything, (void *)(uintptr_t)(round * THREADS + i)) == 0);
        }
        usleep((unsigned)milliseconds * 1000);
        atomic_store(&stop, 1);
        for (int i = 0; i < THREADS; i++) {
            EXPECT(pthread_join(threads[i], NULL) == 0);
        }
        haul_close(pair.near);
        haul_close(pair.far);
        EXPECT(haul_close(pair.client) == 0 && haul_close(pair.server) == 0);
    }
}

/* The last failure is the thread's own. */
static void *fail(void *argument) {
    (void)argument;
    EXPECT(haul_error_code() == 0);
    REFUSED(haul_close(0), HAUL_EHANDLE, "0 is no handle");
    return NULL;
}

static void own_messages(void) {
    pthread_t thread;
    REFUSED(haul_setopt(haul_endpoint(), 999, 0), HAUL_EINVAL, "no option");
    EXPECT(pthread_create(&thread, NULL, fail, NULL) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(haul_error_code() == HAUL_EINVAL && strstr(haul_error_message(), "no option") != NULL);
}

int main(int count, char **arguments) {
    EXPECT(haul_startup() == 0);
    own_messages();
    both_ways();
    closed_while_waiting();
    everything_at_once(count > 1 ? atoi(arguments[1]) : 300);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
