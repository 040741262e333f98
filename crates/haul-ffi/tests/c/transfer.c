/* Content: streams, blocks and files arrive as they were, keys and protocols are what was agreed. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { LARGE = 3 << 20 };

static char pattern(size_t at) {
    return (char)(at * 31 + (at >> 11));
}

struct sending {
    haul_t stream;
    const char *data;
};

static void *send_large(void *argument) {
    struct sending *sending = argument;
    send_all(sending->stream, sending->data, LARGE);
    EXPECT(haul_shutdown(sending->stream, HAUL_SHUT_WR) == 0);
    EXPECT(haul_flush(sending->stream) == 0);
    return NULL;
}

static void ordered(struct pair *pair) {
    char *data = malloc(LARGE), *back = malloc(LARGE + 1);
    for (size_t i = 0; i < LARGE; i++) {
        data[i] = pattern(i);
    }
    struct sending sending = {haul_stream_open(pair->near, HAUL_BIDI), data};
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, send_large, &sending) == 0);
    haul_t far = haul_stream_accept(pair->far, HAUL_BIDI);
    EXPECT(read_to_end(far, back, LARGE + 1) == LARGE);
    EXPECT(memcmp(data, back, LARGE) == 0);
    send_all(far, "got it", 6);
    EXPECT(haul_shutdown(far, HAUL_SHUT_WR) == 0);
    char answer[8];
    EXPECT(read_to_end(sending.stream, answer, sizeof answer) == 6 && memcmp(answer, "got it", 6) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(haul_close(sending.stream) == 0 && haul_close(far) == 0);
    free(data);
    free(back);
}

static void *send_blocks(void *argument) {
    haul_t blocks = *(haul_t *)argument;
    for (uint64_t i = 0; i < 40; i++) {
        size_t length = 1 + (i * 7919) % 200000;
        if (i % 2) {
            struct haul_block block;
            EXPECT(haul_block_alloc(blocks, length, &block) == 0);
            memset(block.data, (int)i, length);
            block.length = length;
            EXPECT(haul_block_submit(blocks, &block) == (int64_t)i && block.index == i);
        } else {
            char *data = malloc(length);
            memset(data, (int)i, length);
            EXPECT(haul_block_send(blocks, data, length) == (int64_t)i);
            free(data);
        }
    }
    EXPECT(haul_shutdown(blocks, HAUL_SHUT_WR) == 0 && haul_flush(blocks) == 0);
    return NULL;
}

static void in_blocks(struct pair *pair) {
    haul_t blocks = haul_stream_open(pair->near, HAUL_BLOCKS);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, send_blocks, &blocks) == 0);
    haul_t far = haul_stream_accept(pair->far, HAUL_BLOCKS);
    struct haul_block block;
    unsigned long long seen = 0;
    int got;
    while ((got = haul_block_recv(far, &block)) == 1) {
        EXPECT(block.index < 40 && !(seen >> block.index & 1));
        seen |= 1ull << block.index;
        EXPECT(block.length == 1 + (block.index * 7919) % 200000);
        for (size_t i = 0; i < block.length; i++) {
            EXPECT(((unsigned char *)block.data)[i] == block.index);
        }
        EXPECT(haul_block_free(&block) == 0 && block.handle == 0);
    }
    EXPECT(got == 0 && seen == (1ull << 40) - 1);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(haul_close(blocks) == 0 && haul_close(far) == 0);
}

struct told {
    int calls;
    int64_t done, total;
    int stop_at_once;
};

static int hear(void *context, int64_t done, int64_t total) {
    struct told *told = context;
    EXPECT(done >= told->done);
    told->calls++;
    told->done = done;
    told->total = total;
    return told->stop_at_once;
}

struct file_job {
    haul_t stream;
    int fd;
    int64_t offset, size;
    struct told told;
};

static void *send_file(void *argument) {
    struct file_job *job = argument;
    int64_t wanted = job->size < 0 ? LARGE - job->offset : job->size, from = job->offset;
    EXPECT(haul_sendfile(job->stream, job->fd, &job->offset, job->size, hear, &job->told) == wanted);
    EXPECT(job->offset == from + wanted);
    EXPECT(job->told.calls >= 1 && job->told.done == wanted && job->told.total == wanted);
    EXPECT(haul_shutdown(job->stream, HAUL_SHUT_WR) == 0 && haul_flush(job->stream) == 0);
    return NULL;
}

static int temporary(void) {
    char name[] = "/tmp/haul-test-XXXXXX";
    int fd = mkstemp(name);
    EXPECT(fd >= 0 && unlink(name) == 0);
    return fd;
}

/* Bytes from `from` to the end, or `size` of them, go from one file to `to` in another one. */
static void file(struct pair *pair, int kind, int source, int64_t from, int64_t size, int64_t to) {
    int64_t wanted = size < 0 ? LARGE - from : size;
    struct file_job job = {.stream = haul_stream_open(pair->near, kind), .fd = source, .offset = from, .size = size};
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, send_file, &job) == 0);
    haul_t far = haul_stream_accept(pair->far, kind);
    int target = temporary();
    struct told told = {0};
    int64_t offset = to;
    EXPECT(haul_recvfile(far, target, &offset, size, hear, &told) == wanted);
    EXPECT(offset == to + wanted && told.done == wanted && told.total == size);
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(lseek(target, 0, SEEK_CUR) == 0 && lseek(target, 0, SEEK_END) == to + wanted);
    char *back = malloc((size_t)wanted);
    EXPECT(pread(target, back, (size_t)wanted, to) == wanted);
    for (int64_t i = 0; i < wanted; i++) {
        EXPECT(back[i] == pattern((size_t)(from + i)));
    }
    free(back);
    close(target);
    EXPECT(haul_close(job.stream) == 0 && haul_close(far) == 0);
}

static void files(struct pair *pair) {
    int source = temporary();
    char *data = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        data[i] = pattern(i);
    }
    EXPECT(write(source, data, LARGE) == LARGE);
    free(data);
    for (int kind = HAUL_UNI; kind <= HAUL_BLOCKS; kind++) {
        file(pair, kind, source, 0, -1, 0);
        file(pair, kind, source, 4097, 1500000, 333);
        file(pair, kind, source, LARGE - 1, 1, 0);
    }
    /* The application says stop. */
    haul_t stream = haul_stream_open(pair->near, HAUL_BLOCKS);
    struct told told = {.stop_at_once = 1};
    int64_t offset = 0;
    EXPECT(haul_setopt(pair->near, HAUL_OPT_RATE_LIMIT, 20000000) == 0);
    REFUSED(haul_sendfile(stream, source, &offset, -1, hear, &told), HAUL_ECANCELLED, "stopped by the application");
    EXPECT(offset > 0 && offset < LARGE);
    REFUSED(haul_sendfile(stream, source, &offset, -1, NULL, NULL), HAUL_ESTATE, "one of its own");
    EXPECT(haul_setopt(pair->near, HAUL_OPT_RATE_LIMIT, 0) == 0);
    EXPECT(haul_close(stream) == 0);
    haul_t far = haul_stream_accept(pair->far, HAUL_BLOCKS);
    int target = temporary();
    offset = 0;
    EXPECT(haul_recvfile(far, target, &offset, -1, NULL, NULL) == HAUL_ERESET);
    EXPECT(haul_close(far) == 0);
    /* Blocks that are no file's. */
    stream = haul_stream_open(pair->near, HAUL_BLOCKS);
    EXPECT(haul_block_send(stream, "short", 5) == 0 && haul_block_send(stream, "short", 5) == 1);
    EXPECT(haul_shutdown(stream, HAUL_SHUT_WR) == 0);
    far = haul_stream_accept(pair->far, HAUL_BLOCKS);
    offset = 0;
    REFUSED(haul_recvfile(far, target, &offset, -1, NULL, NULL), HAUL_EPROTOCOL, "not the file");
    EXPECT(haul_close(far) == 0 && haul_close(stream) == 0);
    close(source);
    close(target);
}

static int trust_one(void *context, const char *fingerprint) {
    return strcmp(context, fingerprint) == 0;
}

/* Both sides have keys, know each other, and agree on a protocol. */
static void keys(void) {
    struct sockaddr_in address = loopback(0);
    char near_key[HAUL_FINGERPRINT_SIZE], far_key[HAUL_FINGERPRINT_SIZE], shown[HAUL_FINGERPRINT_SIZE], protocol[16];
    unsigned char document[128];
    haul_t near_identity = haul_identity_generate(), first = haul_identity_generate();
    int64_t length = haul_identity_pkcs8(first, document, sizeof document);
    EXPECT(length > 0);
    REFUSED(haul_identity_pkcs8(first, document, 10), HAUL_EINVAL, "room for 10");
    haul_t far_identity = haul_identity_from_pkcs8(document, (size_t)length);
    EXPECT(haul_fingerprint(near_identity, near_key, sizeof near_key) == 0);
    EXPECT(haul_fingerprint(first, far_key, sizeof far_key) == 0);
    EXPECT(haul_fingerprint(far_identity, shown, sizeof shown) == 0 && strcmp(shown, far_key) == 0);
    haul_t server = haul_endpoint(), client = haul_endpoint();
    be_patient(server), be_patient(client);
    EXPECT(haul_set_identity(server, far_identity) == 0 && haul_set_identity(client, near_identity) == 0);
    EXPECT(haul_trust_callback(server, trust_one, near_key) == 0 && haul_trust_fingerprint(client, far_key) == 0);
    EXPECT(haul_add_protocol(server, "b") == 0 && haul_add_protocol(client, "a") == 0 && haul_add_protocol(client, "b") == 0);
    EXPECT(haul_listen(server, (struct sockaddr *)&address, sizeof address) == 0);
    socklen_t size = sizeof address;
    EXPECT(haul_getsockname(server, (struct sockaddr *)&address, &size) == 0);
    haul_t near = haul_connect(client, (struct sockaddr *)&address, sizeof address);
    struct sockaddr_in peer;
    size = sizeof peer;
    haul_t far = haul_accept(server, (struct sockaddr *)&peer, &size);
    EXPECT(near > 0 && far > 0);
    EXPECT(size == sizeof peer && peer.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    EXPECT(haul_fingerprint(far, shown, sizeof shown) == 0 && strcmp(shown, near_key) == 0);
    EXPECT(haul_fingerprint(near, shown, sizeof shown) == 0 && strcmp(shown, far_key) == 0);
    EXPECT(haul_protocol(near, protocol, sizeof protocol) == 0 && strcmp(protocol, "b") == 0);
    size = sizeof peer;
    EXPECT(haul_getpeername(near, (struct sockaddr *)&peer, &size) == 0 && peer.sin_port == address.sin_port);
    /* One with another key is turned away. */
    haul_t stranger = haul_endpoint();
    be_patient(stranger);
    EXPECT(haul_set_identity(stranger, first) == 0 && haul_trust_fingerprint(stranger, far_key) == 0);
    EXPECT(haul_add_protocol(stranger, "b") == 0);
    haul_t refused = haul_connect(stranger, (struct sockaddr *)&address, sizeof address);
    EXPECT(refused == HAUL_EREFUSED || haul_closed(refused) == HAUL_EREFUSED);
    /* One that is asked for by nobody's name. */
    haul_t open[] = {near_identity, first, far_identity, near, far, server, client, stranger};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        EXPECT(haul_close(open[i]) == 0);
    }
}

static void kept_identity(void) {
    char directory[] = "/tmp/haul-test-XXXXXX", first[HAUL_FINGERPRINT_SIZE], second[HAUL_FINGERPRINT_SIZE], command[64];
    EXPECT(mkdtemp(directory) != NULL);
    haul_t made = haul_identity_load(directory), loaded = haul_identity_load(directory);
    EXPECT(made > 0 && loaded > 0);
    EXPECT(haul_fingerprint(made, first, sizeof first) == 0 && haul_fingerprint(loaded, second, sizeof second) == 0);
    EXPECT(strcmp(first, second) == 0);
    EXPECT(haul_close(made) == 0 && haul_close(loaded) == 0);
    snprintf(command, sizeof command, "%s/identity", directory);
    EXPECT(chmod(command, 0644) == 0);
    REFUSED(haul_identity_load(directory), HAUL_ESYSTEM, "others may read");
    EXPECT(unlink(command) == 0 && rmdir(directory) == 0);
}

static void statistics(struct pair *pair) {
    struct haul_statistics near = {.size = sizeof near}, far = {.size = sizeof far};
    EXPECT(haul_stats(pair->near, &near) == 0 && haul_stats(pair->far, &far) == 0);
    EXPECT(near.rtt_us > 0 && near.sent_pkts > 0 && near.packet_bytes >= 1200 && near.paths == 1);
    EXPECT(near.sent_bytes >= LARGE && far.received_stream_bytes >= LARGE && far.received_bytes > far.received_stream_bytes);
}

int main(void) {
    EXPECT(haul_startup() == 0);
    struct pair pair = connected();
    ordered(&pair);
    in_blocks(&pair);
    files(&pair);
    statistics(&pair);
    part(&pair);
    keys();
    kept_identity();
    EXPECT(haul_cleanup() == 0);
    return 0;
}
