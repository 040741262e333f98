/*
 * Sends to appserver, and prints what the connection does each second.
 *
 *     appclient HOST PORT KEY [MEGABYTES]        100 MB unless it is said
 *
 * KEY is what appserver has printed: it says who is trusted to be the server.
 */
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <haul.h>

static int failed(const char *what) {
    fprintf(stderr, "appclient: %s: %s\n", what, haul_error_message());
    return 1;
}

struct monitored {
    haul_t connection;
    atomic_int over;
};

/* What UDT's example does with perfmon. */
static void *monitor(void *argument) {
    struct monitored *monitored = argument;
    struct haul_statistics now = {.size = sizeof now}, before = {.size = sizeof before};
    printf("%12s %12s %10s %10s %14s\n", "sent Mbit/s", "rate Mbit/s", "RTT ms", "lost pkts", "in flight B");
    for (int tenths = 1; !atomic_load(&monitored->over); tenths++) {
        usleep(100000);
        if (tenths % 10 == 0 && haul_stats(monitored->connection, &now) == 0) {
            printf("%12.1f %12.1f %10.3f %10llu %14llu\n", (double)(now.sent_bytes - before.sent_bytes) * 8e-6,
                   (double)now.delivery_rate_bps * 1e-6, (double)now.rtt_us * 1e-3, (unsigned long long)now.lost_pkts,
                   (unsigned long long)now.in_flight_bytes);
            before = now;
        }
    }
    return NULL;
}

static haul_t connect_to(const char *host, const char *port, const char *key) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *peer;
    int found = getaddrinfo(host, port, &hints, &peer);
    if (found != 0) {
        fprintf(stderr, "appclient: %s: %s\n", host, gai_strerror(found));
        exit(1);
    }
    haul_t endpoint = haul_endpoint();
    haul_t connection = haul_trust_fingerprint(endpoint, key);
    if (connection == 0) {
        connection = haul_connect(endpoint, peer->ai_addr, peer->ai_addrlen);
    }
    freeaddrinfo(peer);
    return connection;
}

int main(int count, char **arguments) {
    char *end = "";
    unsigned long megabytes = count > 4 ? strtoul(arguments[4], &end, 10) : 100;
    if (count < 4 || count > 5 || *end != 0 || megabytes == 0 || megabytes > 1000000000) {
        fprintf(stderr, "usage: appclient HOST PORT KEY [MEGABYTES]\n");
        return 2;
    }
    uint64_t left = (uint64_t)megabytes * 1000000;
    if (haul_startup() < 0) {
        return failed("startup");
    }
    haul_t connection = connect_to(arguments[1], arguments[2], arguments[3]);
    if (connection < 0) {
        return failed("connecting");
    }
    haul_t stream = haul_stream_open(connection, HAUL_BIDI);
    struct monitored monitored = {connection, 0};
    pthread_t thread;
    if (stream < 0 || pthread_create(&thread, NULL, monitor, &monitored) != 0) {
        return failed("opening a stream");
    }
    static char data[1 << 20];
    int64_t sent = 0;
    while (left > 0 && sent >= 0) {
        sent = haul_send(stream, data, left < sizeof data ? (size_t)left : sizeof data);
        left -= sent > 0 ? (uint64_t)sent : 0;
    }
    if (sent < 0 || haul_shutdown(stream, HAUL_SHUT_WR) < 0) {
        return failed("sending");
    }
    char answer[64];
    size_t length = 0;
    int64_t got = 1;
    while (length + 1 < sizeof answer && (got = haul_recv(stream, answer + length, sizeof answer - 1 - length)) > 0) {
        length += (size_t)got;
    }
    atomic_store(&monitored.over, 1);
    pthread_join(thread, NULL);
    if (got < 0) {
        return failed("the answer");
    }
    answer[length] = 0;
    printf("the server has received %s\n", answer);
    return haul_cleanup() < 0;
}
