/*
 * Fetches a file from sendfile.
 *
 *     recvfile HOST PORT KEY NAME LOCAL-NAME
 *
 * KEY is what sendfile has printed: it says who is trusted to be the server.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <haul.h>

static int failed(const char *what) {
    fprintf(stderr, "recvfile: %s: %s\n", what, haul_error_message());
    return 1;
}

static int failed_here(const char *what) {
    fprintf(stderr, "recvfile: %s: %s\n", what, strerror(errno));
    return 1;
}

static int progress(void *context, int64_t done, int64_t total) {
    (void)context;
    (void)total;
    fprintf(stderr, "\r%lld bytes", (long long)done);
    return 0;
}

static haul_t connect_to(const char *host, const char *port, const char *key) {
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *peer;
    int found = getaddrinfo(host, port, &hints, &peer);
    if (found != 0) {
        fprintf(stderr, "recvfile: %s: %s\n", host, gai_strerror(found));
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
    if (count != 6) {
        fprintf(stderr, "usage: recvfile HOST PORT KEY NAME LOCAL-NAME\n");
        return 2;
    }
    if (haul_startup() < 0) {
        return failed("startup");
    }
    haul_t connection = connect_to(arguments[1], arguments[2], arguments[3]);
    if (connection < 0) {
        return failed("connecting");
    }
    const char *name = arguments[4];
    haul_t request = haul_stream_open(connection, HAUL_UNI);
    if (haul_send(request, name, strlen(name)) < 0 || haul_shutdown(request, HAUL_SHUT_WR) < 0) {
        return failed("asking");
    }
    haul_t blocks = haul_stream_accept(connection, HAUL_BLOCKS);
    if (blocks < 0) {
        return failed(name);
    }
    int fd = open(arguments[5], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return failed_here(arguments[5]);
    }
    int64_t offset = 0, got = haul_recvfile(blocks, fd, &offset, -1, progress, NULL);
    fputc('\n', stderr);
    if (got < 0) {
        return failed("receiving");
    }
    if (close(fd) < 0) {
        return failed_here(arguments[5]);
    }
    printf("received %s, %lld bytes\n", name, (long long)got);
    /* Whoever reads last closes. */
    haul_close_with(connection, 0, "received");
    return haul_cleanup() < 0;
}
