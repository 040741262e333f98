/*
 * Blocks or a stream from memory to memory over loopback, both ends in this process.
 *
 *     speed blocks|stream SECONDS
 *
 * Prints how many bytes arrived, and in how many nanoseconds. What it does is what ../speed.rs does in Rust.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <haul.h>

enum { PIECE = 1 << 20 };

static void must(int64_t result) {
    if (result < 0) {
        fprintf(stderr, "speed: %s\n", haul_error_message());
        exit(1);
    }
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct receiving {
    haul_t connection;
    int kind;
    uint64_t bytes;
};

static void *receive(void *argument) {
    struct receiving *receiving = argument;
    haul_t stream = haul_stream_accept(receiving->connection, receiving->kind);
    must(stream);
    if (receiving->kind == HAUL_BLOCKS) {
        struct haul_block block;
        int got;
        while ((got = haul_block_recv(stream, &block)) == 1) {
            receiving->bytes += block.length;
            must(haul_block_free(&block));
        }
        must(got);
    } else {
        char *buffer = malloc(PIECE);
        int64_t got;
        while ((got = haul_recv(stream, buffer, PIECE)) > 0) {
            receiving->bytes += (uint64_t)got;
        }
        must(got);
        free(buffer);
    }
    must(haul_close(stream));
    return NULL;
}

static void send_until(haul_t stream, int kind, uint64_t end) {
    char *data = malloc(PIECE);
    memset(data, 7, PIECE);
    if (kind == HAUL_BLOCKS) {
        struct haul_block block;
        while (now_ns() < end) {
            must(haul_block_alloc(stream, PIECE, &block));
            memcpy(block.data, data, PIECE);
            block.length = PIECE;
            must(haul_block_submit(stream, &block));
        }
    } else {
        while (now_ns() < end) {
            must(haul_send(stream, data, PIECE));
        }
    }
    free(data);
    must(haul_shutdown(stream, HAUL_SHUT_WR));
    must(haul_flush(stream));
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: speed blocks|stream SECONDS\n");
        return 2;
    }
    int kind = strcmp(arguments[1], "blocks") == 0 ? HAUL_BLOCKS : HAUL_UNI;
    must(haul_startup());
    haul_t identity = haul_identity_generate(), server = haul_endpoint(), client = haul_endpoint();
    char key[HAUL_FINGERPRINT_SIZE];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    must(haul_fingerprint(identity, key, sizeof key));
    must(haul_set_identity(server, identity));
    must(haul_trust_anyone(server));
    must(haul_listen(server, (struct sockaddr *)&address, length));
    must(haul_getsockname(server, (struct sockaddr *)&address, &length));
    must(haul_trust_fingerprint(client, key));
    haul_t near = haul_connect(client, (struct sockaddr *)&address, length);
    must(near);
    struct receiving receiving = {.connection = haul_accept(server, NULL, NULL), .kind = kind};
    must(receiving.connection);
    haul_t stream = haul_stream_open(near, kind);
    must(stream);
    pthread_t thread;
    uint64_t begun = now_ns();
    pthread_create(&thread, NULL, receive, &receiving);
    send_until(stream, kind, begun + (uint64_t)(atof(arguments[2]) * 1e9));
    pthread_join(thread, NULL);
    printf("%llu %llu\n", (unsigned long long)receiving.bytes, (unsigned long long)(now_ns() - begun));
    must(haul_cleanup());
    return 0;
}
