/*
 * Receives whatever clients send, and tells each how many bytes it got.
 *
 *     appserver [PORT [CLIENTS]]        any port and any number of clients, unless it is said
 *
 * Prints where it listens and its key, which appclient wants to know. A thread a client.
 */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <haul.h>

static int failed(const char *what) {
    fprintf(stderr, "appserver: %s: %s\n", what, haul_error_message());
    return 1;
}

static void *serve(void *argument) {
    haul_t connection = *(haul_t *)argument;
    free(argument);
    haul_t stream = haul_stream_accept(connection, HAUL_BIDI);
    if (stream < 0) {
        failed("no stream from the client");
        haul_close(connection);
        return NULL;
    }
    const size_t size = 1 << 20;
    char *buffer = malloc(size);
    uint64_t total = 0;
    int64_t got = buffer ? 1 : -1;
    while (got > 0 && (got = haul_recv(stream, buffer, size)) > 0) {
        total += (uint64_t)got;
    }
    free(buffer);
    if (got < 0) {
        failed("receiving");
    } else {
        /* The answer is the last word: whoever reads it closes, and nobody before. */
        char answer[64];
        int length = snprintf(answer, sizeof answer, "%llu bytes", (unsigned long long)total);
        if (haul_send(stream, answer, (size_t)length) < 0 || haul_shutdown(stream, HAUL_SHUT_WR) < 0 ||
            haul_closed(connection) != HAUL_EPEERCLOSED) {
            failed("answering");
        }
        printf("received %s\n", answer);
        fflush(stdout);
    }
    haul_close(stream);
    haul_close(connection);
    return NULL;
}

/* Listens on every address and gives the endpoint; prints its port and its key. */
static haul_t listen_on(int port) {
    haul_t identity = haul_identity_generate(), endpoint = haul_endpoint();
    char key[HAUL_FINGERPRINT_SIZE];
    struct sockaddr_in6 address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons((uint16_t)port);
    if (haul_fingerprint(identity, key, sizeof key) < 0 || haul_set_identity(endpoint, identity) < 0 ||
        haul_trust_anyone(endpoint) < 0 || haul_listen(endpoint, (struct sockaddr *)&address, length) < 0 ||
        haul_getsockname(endpoint, (struct sockaddr *)&address, &length) < 0) {
        return haul_error_code();
    }
    printf("listening on port %d, key %s\n", ntohs(address.sin6_port), key);
    fflush(stdout);
    return endpoint;
}

/* A whole number up to `most`, or -1. */
static int number(const char *text, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && value >= 0 && value <= most ? (int)value : -1;
}

int main(int count, char **arguments) {
    int port = count > 1 ? number(arguments[1], 65535) : 0, clients = count > 2 ? number(arguments[2], INT_MAX) : -1;
    if (port < 0 || count > 3 || (count > 2 && clients < 0)) {
        fprintf(stderr, "usage: appserver [PORT [CLIENTS]]\n");
        return 2;
    }
    if (haul_startup() < 0) {
        return failed("startup");
    }
    haul_t endpoint = listen_on(port);
    if (endpoint < 0) {
        return failed("listening");
    }
    pthread_t *threads = clients > 0 ? calloc((size_t)clients, sizeof *threads) : NULL;
    for (int served = 0; clients < 0 || served < clients; served++) {
        haul_t *connection = malloc(sizeof *connection);
        pthread_t thread;
        if (!connection || (*connection = haul_accept(endpoint, NULL, NULL)) < 0) {
            return failed("accepting");
        }
        if (pthread_create(&thread, NULL, serve, connection) != 0) {
            return 1;
        }
        if (threads) {
            threads[served] = thread;
        } else {
            pthread_detach(thread);
        }
    }
    for (int served = 0; threads && served < clients; served++) {
        pthread_join(threads[served], NULL);
    }
    free(threads);
    return haul_cleanup() < 0;
}
