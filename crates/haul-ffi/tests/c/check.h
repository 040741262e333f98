/* What the test programs share: expectations, and a pair of endpoints that know each other. */
#ifndef CHECK_H
#define CHECK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <haul.h>

/* A wait that nobody ends is a failure, not a test that stands still. */
__attribute__((constructor)) static void end_some_time(void) {
    alarm(300);
}

#define EXPECT(condition)                                                                                                            \
    do {                                                                                                                             \
        if (!(condition)) {                                                                                                          \
            fprintf(stderr, "%s:%d: not so: %s (last failure %d: %s)\n", __FILE__, __LINE__, #condition, haul_error_code(),          \
                    haul_error_message());                                                                                           \
            exit(1);                                                                                                                 \
        }                                                                                                                            \
    } while (0)

/* A call that must give this code, with a message that has these words. */
#define REFUSED(call, code, words)                                                                                                   \
    do {                                                                                                                             \
        long long refused_got = (long long)(call);                                                                                   \
        if (refused_got != (code) || haul_error_code() != (code) || strstr(haul_error_message(), words) == NULL) {                   \
            fprintf(stderr, "%s:%d: %s gave %lld (wanted %d): '%s' (wanted '%s')\n", __FILE__, __LINE__, #call, refused_got, (code), \
                    haul_error_message(), words);                                                                                    \
            exit(1);                                                                                                                 \
        }                                                                                                                            \
    } while (0)

static inline struct sockaddr_in loopback(unsigned short port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Under valgrind, beside other tests, a handshake takes seconds, and so does the way to haul_accept(). */
static inline void be_patient(haul_t endpoint) {
    EXPECT(haul_setopt(endpoint, HAUL_OPT_CONNTIMEO, 60000) == 0);
}

struct pair {
    haul_t server;
    haul_t client;
    struct sockaddr_in address; /* of the server */
    haul_t near;                /* the client's connection */
    haul_t far;                 /* the server's */
};

/* A server that keeps clients so long that nobody accepts. */
static inline haul_t listening_for(int64_t patience_ms, struct sockaddr_in *address, char fingerprint[HAUL_FINGERPRINT_SIZE]) {
    haul_t identity = haul_identity_generate();
    EXPECT(identity > 0);
    EXPECT(haul_fingerprint(identity, fingerprint, HAUL_FINGERPRINT_SIZE) == 0);
    haul_t server = haul_endpoint();
    EXPECT(server > 0);
    EXPECT(haul_set_identity(server, identity) == 0);
    EXPECT(haul_trust_anyone(server) == 0);
    EXPECT(haul_setopt(server, HAUL_OPT_CONNTIMEO, patience_ms) == 0);
    *address = loopback(0);
    EXPECT(haul_listen(server, (struct sockaddr *)address, sizeof *address) == 0);
    socklen_t length = sizeof *address;
    EXPECT(haul_getsockname(server, (struct sockaddr *)address, &length) == 0);
    EXPECT(length == sizeof *address && address->sin_port != 0);
    EXPECT(haul_close(identity) == 0);
    return server;
}

static inline haul_t listening(struct sockaddr_in *address, char fingerprint[HAUL_FINGERPRINT_SIZE]) {
    return listening_for(60000, address, fingerprint);
}

static inline struct pair endpoints(void) {
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    char fingerprint[HAUL_FINGERPRINT_SIZE];
    pair.server = listening(&pair.address, fingerprint);
    pair.client = haul_endpoint();
    EXPECT(pair.client > 0);
    EXPECT(haul_trust_fingerprint(pair.client, fingerprint) == 0);
    be_patient(pair.client);
    return pair;
}

static inline struct pair connected(void) {
    struct pair pair = endpoints();
    pair.near = haul_connect(pair.client, (struct sockaddr *)&pair.address, sizeof pair.address);
    EXPECT(pair.near > 0);
    pair.far = haul_accept(pair.server, NULL, NULL);
    EXPECT(pair.far > 0);
    return pair;
}

static inline void part(struct pair *pair) {
    EXPECT(haul_close(pair->near) == 0);
    EXPECT(haul_close(pair->far) == 0);
    EXPECT(haul_close(pair->client) == 0);
    EXPECT(haul_close(pair->server) == 0);
}

static inline void send_all(haul_t stream, const void *data, size_t length) {
    EXPECT(haul_send(stream, data, length) == (int64_t)length);
}

/* Reads to the end and gives the number of bytes, of which `buffer` has the first. */
static inline size_t read_to_end(haul_t stream, char *buffer, size_t size) {
    size_t total = 0;
    char rest[4096];
    for (;;) {
        int64_t got = total < size ? haul_recv(stream, buffer + total, size - total) : haul_recv(stream, rest, sizeof rest);
        EXPECT(got >= 0);
        if (got == 0) {
            return total;
        }
        total += (size_t)got;
    }
}

#endif
