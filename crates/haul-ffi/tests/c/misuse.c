/* Null, wrong, foreign and closed handles, pointers and numbers: each is an answer. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

/* Every function that takes a handle, with a handle that is not one of its kind. */
static void every_call(haul_t wrong, int code) {
    char text[64];
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    struct haul_statistics statistics = {.size = sizeof statistics};
    struct haul_copy_result result = {.size = sizeof result};
    struct haul_block block;
    int64_t value, offset = 0;
    const char *sources[] = {"x"};
    struct haul_fleet_job job = {.size = sizeof job, .sources = sources, .source_count = 1, .destination = "y"};
    EXPECT(haul_identity_pkcs8(wrong, text, sizeof text) == code);
    EXPECT(haul_fingerprint(wrong, text, sizeof text) == code);
    EXPECT(haul_set_identity(wrong, wrong) == code);
    EXPECT(haul_trust_fingerprint(wrong, "SHA256:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc") == code);
    EXPECT(haul_trust_anyone(wrong) == code);
    EXPECT(haul_add_protocol(wrong, "x") == code);
    struct sockaddr_in to = loopback(1);
    EXPECT(haul_bind(wrong, (struct sockaddr *)&to, sizeof to) == code);
    EXPECT(haul_listen(wrong, (struct sockaddr *)&to, sizeof to) == code);
    EXPECT(haul_accept(wrong, NULL, NULL) == code);
    EXPECT(haul_connect(wrong, (struct sockaddr *)&to, sizeof to) == code);
    EXPECT(haul_connect_start(wrong, (struct sockaddr *)&to, sizeof to) == code);
    EXPECT(haul_connect_finish(wrong) == code);
    EXPECT(haul_getsockname(wrong, (struct sockaddr *)&address, &length) == code);
    EXPECT(haul_getpeername(wrong, (struct sockaddr *)&address, &length) == code);
    EXPECT(haul_protocol(wrong, text, sizeof text) == code);
    EXPECT(haul_close_with(wrong, 0, NULL) == code);
    EXPECT(haul_closed(wrong) == code);
    EXPECT(haul_stream_open(wrong, HAUL_BIDI) == code);
    EXPECT(haul_stream_accept(wrong, HAUL_BIDI) == code);
    EXPECT(haul_send(wrong, "x", 1) == code);
    EXPECT(haul_recv(wrong, text, 1) == code);
    EXPECT(haul_shutdown(wrong, HAUL_SHUT_WR) == code);
    EXPECT(haul_shutdown(wrong, HAUL_SHUT_RD) == code);
    EXPECT(haul_flush(wrong) == code);
    EXPECT(haul_reset(wrong, 0) == code);
    EXPECT(haul_stop(wrong, 0) == code);
    EXPECT(haul_block_alloc(wrong, 1, &block) == code && block.handle == 0);
    EXPECT(haul_block_send(wrong, "x", 1) == code);
    EXPECT(haul_block_recv(wrong, &block) == code && block.handle == 0);
    EXPECT(haul_sendfile(wrong, 0, &offset, 1, NULL, NULL) == code);
    EXPECT(haul_recvfile(wrong, 0, &offset, 1, NULL, NULL) == code);
    EXPECT(haul_setopt(wrong, HAUL_OPT_MEMORY, 1 << 20) == code);
    EXPECT(haul_setopt_name(wrong, HAUL_OPT_CONTROLLER, "cubic") == code);
    EXPECT(haul_getopt(wrong, HAUL_OPT_MEMORY, &value) == code);
    EXPECT(haul_stats(wrong, &statistics) == code);
    EXPECT(haul_copy_wait(wrong, &result) == code);
    EXPECT(haul_cancel(wrong) == code);
    EXPECT(haul_fleet_set_dir(wrong, "x") == code);
    EXPECT(haul_fleet_download(wrong, &job) == code);
    EXPECT(haul_fleet_upload(wrong, &job) == code);
    EXPECT(haul_fleet_status(wrong, NULL, NULL) == code);
    EXPECT(haul_fleet_stop(wrong) == code);
    EXPECT(haul_error_code() == code && haul_fault(code) == HAUL_FAULT_CALLER);
}

static void numbers_that_are_no_handles(haul_t good) {
    haul_t wrong[] = {0, -1, HAUL_EHANDLE, INT64_MIN, INT64_MAX, good + 1, good + ((haul_t)1 << 32), good & 0xffffffff, 3};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        every_call(wrong[i], HAUL_EHANDLE);
        EXPECT(haul_close(wrong[i]) == HAUL_EHANDLE);
        EXPECT(haul_fd(wrong[i], HAUL_IN) == HAUL_EHANDLE);
        EXPECT(haul_ready(wrong[i], HAUL_IN) == HAUL_EHANDLE);
    }
    REFUSED(haul_close(0), HAUL_EHANDLE, "0 is no handle");
    REFUSED(haul_close(HAUL_EINVAL), HAUL_EHANDLE, "code of a failure");
    REFUSED(haul_close((haul_t)(int)good), HAUL_EHANDLE, "smaller than haul_t");
}

/* What a fleet is wanted for, with something else; and without a job. */
static void fleets(haul_t identity) {
    const char *sources[] = {"x"};
    struct haul_fleet_job job = {.size = sizeof job, .sources = sources, .source_count = 1, .destination = "y"};
    REFUSED(haul_fleet_set_dir(identity, "x"), HAUL_EHANDLE, "an identity where a fleet is wanted");
    REFUSED(haul_fleet_download(identity, &job), HAUL_EHANDLE, "an identity where a fleet is wanted");
    REFUSED(haul_fleet_upload(identity, &job), HAUL_EHANDLE, "an identity where a fleet is wanted");
    REFUSED(haul_fleet_stop(identity), HAUL_EHANDLE, "an identity where a fleet is wanted");
    REFUSED(haul_fleet_download(identity, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_fleet_upload(identity, NULL), HAUL_EINVAL, "null");
    job.source_count = 0;
    REFUSED(haul_fleet_download(identity, &job), HAUL_EINVAL, "0 sources");
    job.source_count = 1, job.destination = NULL;
    REFUSED(haul_fleet_upload(identity, &job), HAUL_EINVAL, "null");
}

static void pointers(struct pair *pair, haul_t stream) {
    char text[HAUL_FINGERPRINT_SIZE];
    struct sockaddr_in to = loopback(1);
    REFUSED(haul_send(stream, NULL, 5), HAUL_EINVAL, "null");
    EXPECT(haul_send(stream, NULL, 0) == 0);
    REFUSED(haul_send(stream, text, SIZE_MAX), HAUL_EINVAL, "no buffer");
    REFUSED(haul_recv(stream, NULL, 5), HAUL_EINVAL, "null");
    REFUSED(haul_recv(stream, text, 0), HAUL_EINVAL, "0 bytes");
    REFUSED(haul_fingerprint(pair->near, NULL, sizeof text), HAUL_EINVAL, "null");
    REFUSED(haul_fingerprint(pair->near, text, sizeof text - 1), HAUL_EINVAL, "51 are wanted");
    REFUSED(haul_trust_fingerprint(pair->client, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_trust_fingerprint(pair->client, "SHA256:no"), HAUL_EINVAL, "not a fingerprint");
    REFUSED(haul_trust_fingerprint(pair->client, "\xff"), HAUL_EINVAL, "UTF-8");
    REFUSED(haul_trust_callback(pair->client, NULL, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_add_protocol(pair->client, ""), HAUL_EINVAL, "1 to 255");
    REFUSED(haul_identity_from_pkcs8("not a key", 9), HAUL_EINVAL, "PKCS#8");
    REFUSED(haul_identity_from_pkcs8(NULL, 9), HAUL_EINVAL, "null");
    REFUSED(haul_connect(pair->client, NULL, sizeof to), HAUL_EINVAL, "null");
    REFUSED(haul_connect(pair->client, (struct sockaddr *)&to, 1), HAUL_EINVAL, "1 bytes");
    REFUSED(haul_connect(pair->client, (struct sockaddr *)&to, 8), HAUL_EINVAL, "too few");
    to.sin_family = AF_UNIX;
    REFUSED(haul_connect(pair->client, (struct sockaddr *)&to, sizeof to), HAUL_EINVAL, "AF_INET");
    to = loopback(0);
    REFUSED(haul_connect(pair->client, (struct sockaddr *)&to, sizeof to), HAUL_EINVAL, "not the address of a peer");
    REFUSED(haul_getsockname(pair->server, NULL, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_stats(pair->near, NULL), HAUL_EINVAL, "null");
    struct haul_statistics statistics = {0};
    REFUSED(haul_stats(pair->near, &statistics), HAUL_EINVAL, "sizeof");
    REFUSED(haul_getopt(pair->server, HAUL_OPT_MEMORY, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_copy_start(NULL), HAUL_EINVAL, "null");
    struct haul_copy_request request = {0};
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "sizeof");
    request.size = sizeof request;
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "0 sources");
    const char *sources[] = {"here", "there"};
    request.sources = sources;
    request.source_count = 2;
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "null");
    request.destination = "elsewhere";
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "both on this machine");
    request.flags = 1 << 20;
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "flags");
    REFUSED(haul_poll(NULL, 1, 0), HAUL_EINVAL, "array");
    EXPECT(haul_poll(NULL, 0, 0) == 0);
    REFUSED(haul_ready(stream, 2), HAUL_EINVAL, "events");
    /* A structure of an older program is filled as far as it goes, and not beyond. */
    uint64_t old[4] = {24, 0, 0, 4711};
    EXPECT(haul_stats(pair->near, (struct haul_statistics *)old) == 0);
    EXPECT(old[0] == 24 && old[1] > 0 && old[3] == 4711);
    /* One of a newer one too. */
    struct {
        struct haul_statistics known;
        uint64_t unknown;
    } newer = {{.size = sizeof newer}, 4711};
    EXPECT(haul_stats(pair->near, &newer.known) == 0);
    EXPECT(newer.known.rtt_us > 0 && newer.known.size == sizeof newer && newer.unknown == 4711);
}

static void options(struct pair *pair, haul_t stream) {
    static const struct {
        int option;
        int64_t value, wrong;
    } known[] = {
        {HAUL_OPT_SNDTIMEO, 5, -2},        {HAUL_OPT_RCVTIMEO, INT64_MAX, INT64_MIN}, {HAUL_OPT_CONNTIMEO, 1000, 0},
        {HAUL_OPT_MEMORY, 1 << 20, 1},     {HAUL_OPT_STREAM_WINDOW, 1 << 20, -1},     {HAUL_OPT_MAX_PACKET, 1400, 1199},
        {HAUL_OPT_IDLE_TIMEOUT, 1000, 0},  {HAUL_OPT_KEEP_ALIVE, 0, -1},              {HAUL_OPT_MAX_STREAMS, 7, 0},
        {HAUL_OPT_RATE_LIMIT, 1000000, -1}, {HAUL_OPT_PATHS, 2, 9},
    };
    haul_t fresh = haul_endpoint();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int64_t value = 0;
        REFUSED(haul_setopt(fresh, known[i].option, known[i].wrong), HAUL_EINVAL, "are possible");
        EXPECT(haul_setopt(fresh, known[i].option, known[i].value) == 0);
        EXPECT(haul_getopt(fresh, known[i].option, &value) == 0 && value == known[i].value);
    }
    int64_t value;
    REFUSED(haul_setopt(fresh, 999, 0), HAUL_EINVAL, "no option");
    REFUSED(haul_setopt(fresh, HAUL_OPT_CONTROLLER, 0), HAUL_EINVAL, "haul_setopt_name");
    REFUSED(haul_setopt_name(fresh, HAUL_OPT_MEMORY, "1"), HAUL_EINVAL, "haul_setopt()");
    REFUSED(haul_setopt_name(fresh, HAUL_OPT_CONTROLLER, "warp"), HAUL_EINVAL, "warp");
    REFUSED(haul_getopt(fresh, HAUL_OPT_CONTROLLER, &value), HAUL_EINVAL, "cannot be read");
    REFUSED(haul_setopt(fresh, HAUL_OPT_PRIORITY, 1), HAUL_EHANDLE, "an endpoint where");
    REFUSED(haul_setopt(stream, HAUL_OPT_MEMORY, 1 << 20), HAUL_EHANDLE, "a stream where");
    EXPECT(haul_setopt(stream, HAUL_OPT_PRIORITY, 255) == 0);
    REFUSED(haul_setopt(stream, HAUL_OPT_PRIORITY, 256), HAUL_EINVAL, "0 to 255");
    EXPECT(haul_setopt_name(pair->near, HAUL_OPT_CONTROLLER, "cubic") == 0);
    EXPECT(haul_setopt(pair->near, HAUL_OPT_RATE_LIMIT, 0) == 0);
    EXPECT(haul_setopt(pair->near, HAUL_OPT_MEMORY, 1 << 24) == 0);
    EXPECT(haul_close(fresh) == 0);
}

static void wrong_times(struct pair *pair) {
    struct sockaddr_in any = loopback(0);
    haul_t fresh = haul_endpoint();
    REFUSED(haul_accept(fresh, NULL, NULL), HAUL_ESTATE, "not bound");
    REFUSED(haul_accept(pair->server, (struct sockaddr *)&any, NULL), HAUL_EINVAL, "both or none");
    REFUSED(haul_getsockname(fresh, (struct sockaddr *)&any, &(socklen_t){sizeof any}), HAUL_ESTATE, "not bound");
    REFUSED(haul_listen(fresh, (struct sockaddr *)&any, sizeof any), HAUL_ESTATE, "haul_set_identity");
    haul_t identity = haul_identity_generate();
    EXPECT(haul_set_identity(fresh, identity) == 0);
    any = loopback(0);
    REFUSED(haul_listen(fresh, (struct sockaddr *)&any, sizeof any), HAUL_ESTATE, "nobody is trusted");
    REFUSED(haul_connect(fresh, (struct sockaddr *)&pair->address, sizeof pair->address), HAUL_ESTATE, "nobody is trusted");
    EXPECT(haul_bind(fresh, (struct sockaddr *)&any, sizeof any) == 0);
    REFUSED(haul_bind(fresh, (struct sockaddr *)&any, sizeof any), HAUL_ESTATE, "bound already");
    REFUSED(haul_accept(fresh, NULL, NULL), HAUL_ESTATE, "does not accept");
    /* A key that is not the server's. */
    char other[HAUL_FINGERPRINT_SIZE];
    EXPECT(haul_fingerprint(identity, other, sizeof other) == 0);
    EXPECT(haul_trust_fingerprint(fresh, other) == 0);
    be_patient(fresh);
    REFUSED(haul_connect(fresh, (struct sockaddr *)&pair->address, sizeof pair->address), HAUL_EUNTRUSTED, "SHA256:");
    EXPECT(haul_fault(HAUL_EUNTRUSTED) == HAUL_FAULT_PEER);
    /* Nobody there. */
    EXPECT(haul_trust_anyone(fresh) == 0);
    EXPECT(haul_setopt(fresh, HAUL_OPT_CONNTIMEO, 100) == 0);
    struct sockaddr_in nobody = loopback(9);
    REFUSED(haul_connect(fresh, (struct sockaddr *)&nobody, sizeof nobody), HAUL_EUNREACHED, "no answer");
    EXPECT(haul_fault(HAUL_EUNREACHED) == HAUL_FAULT_NETWORK);
    /* An address that is taken. */
    haul_t second = haul_endpoint();
    REFUSED(haul_bind(second, (struct sockaddr *)&pair->address, sizeof pair->address), HAUL_ESYSTEM, "cannot bind");
    EXPECT(haul_error_errno() != 0 && haul_fault(HAUL_ESYSTEM) == HAUL_FAULT_SYSTEM);
    EXPECT(haul_close(second) == 0 && haul_close(fresh) == 0 && haul_close(identity) == 0);
}

static void blocks(struct pair *pair) {
    haul_t send = haul_stream_open(pair->near, HAUL_BLOCKS);
    struct haul_block block, again;
    EXPECT(send > 0);
    REFUSED(haul_stream_open(pair->near, 3), HAUL_EINVAL, "kind of stream");
    REFUSED(haul_block_alloc(send, 0, &block), HAUL_EINVAL, "1 to 2097152");
    REFUSED(haul_block_alloc(send, HAUL_BLOCK_MAX + 1, &block), HAUL_EINVAL, "1 to 2097152");
    REFUSED(haul_block_alloc(send, 1, NULL), HAUL_EINVAL, "null");
    REFUSED(haul_block_send(send, "", 0), HAUL_EINVAL, "0 bytes");
    static char large[HAUL_BLOCK_MAX + 1];
    REFUSED(haul_block_send(send, large, sizeof large), HAUL_EINVAL, "2097153 bytes");
    REFUSED(haul_block_recv(send, &block), HAUL_ESTATE, "only sends");
    EXPECT(haul_block_alloc(send, 100, &block) == 0 && block.capacity >= 100);
    REFUSED(haul_block_submit(send, &block), HAUL_EINVAL, "0 bytes");
    block.length = HAUL_BLOCK_MAX + 1;
    REFUSED(haul_block_submit(send, &block), HAUL_EINVAL, "are possible");
    memset(block.data, 'x', 100);
    block.length = 100;
    again = block;
    REFUSED(haul_block_submit(pair->near, &block), HAUL_EHANDLE, "a connection where");
    EXPECT(haul_block_submit(send, &block) == 0);
    EXPECT(block.handle == 0 && block.data == NULL);
    REFUSED(haul_block_submit(send, &again), HAUL_EHANDLE, "closed");
    REFUSED(haul_block_free(&again), HAUL_EHANDLE, "closed");
    EXPECT(haul_block_free(&block) == 0 && haul_block_free(NULL) == 0);
    haul_t receive = haul_stream_accept(pair->far, HAUL_BLOCKS);
    REFUSED(haul_block_send(receive, "x", 1), HAUL_ESTATE, "only receives");
    EXPECT(haul_block_recv(receive, &block) == 1);
    EXPECT(block.length == 100 && block.index == 0 && memcmp(block.data, "xxxx", 4) == 0);
    again = block;
    REFUSED(haul_block_submit(send, &again), HAUL_EINVAL, "received");
    EXPECT(haul_close(block.handle) == 0);
    REFUSED(haul_block_free(&block), HAUL_EHANDLE, "closed");
    EXPECT(haul_setopt(receive, HAUL_OPT_RCVTIMEO, 20) == 0);
    REFUSED(haul_block_recv(receive, &block), HAUL_ETIMEDOUT, "timed out");
    EXPECT(haul_shutdown(send, HAUL_SHUT_WR) == 0 && haul_flush(send) == 0);
    REFUSED(haul_block_send(send, "x", 1), HAUL_ESTATE, "haul_shutdown");
    EXPECT(haul_setopt(receive, HAUL_OPT_RCVTIMEO, -1) == 0);
    EXPECT(haul_block_recv(receive, &block) == 0);
    EXPECT(haul_close(send) == 0 && haul_close(receive) == 0);
}

static void files(struct pair *pair) {
    haul_t send = haul_stream_open(pair->near, HAUL_UNI);
    int64_t offset = -1;
    int null = open("/dev/null", O_RDWR);
    REFUSED(haul_sendfile(send, null, &offset, 1, NULL, NULL), HAUL_EINVAL, "offset");
    offset = 0;
    REFUSED(haul_sendfile(send, null, NULL, 1, NULL, NULL), HAUL_EINVAL, "offset");
    REFUSED(haul_sendfile(send, -1, &offset, 1, NULL, NULL), HAUL_EINVAL, "descriptor");
    REFUSED(haul_sendfile(send, null, &offset, -2, NULL, NULL), HAUL_EINVAL, "size");
    offset = INT64_MAX;
    REFUSED(haul_sendfile(send, null, &offset, 1, NULL, NULL), HAUL_EINVAL, "beyond");
    offset = 0;
    REFUSED(haul_sendfile(send, 1000, &offset, 1, NULL, NULL), HAUL_ESYSTEM, "cannot be read");
    EXPECT(haul_error_errno() != 0 && offset == 0);
    REFUSED(haul_shutdown(send, 3), HAUL_EINVAL, "direction");
    close(null);
    EXPECT(haul_close(send) == 0);
}

/* Asked for before the call that fails, as the arguments of one printf may be; and longer than there is room for. */
static void messages(void) {
    const char *before = haul_error_message();
    EXPECT(haul_error_code() == 0 && strcmp(before, "") == 0);
    REFUSED(haul_close(4711), HAUL_EHANDLE, "");
    EXPECT(before == haul_error_message() && before[0] != 0);
    haul_t endpoint = haul_endpoint();
    char name[3002] = "x";
    for (size_t i = 1; i + 2 < sizeof name; i += 2) {
        memcpy(name + i, "\xc3\xa9", 2);
    }
    REFUSED(haul_trust_fingerprint(endpoint, name), HAUL_EINVAL, "\xc3\xa9");
    EXPECT(before == haul_error_message() && strlen(before) == 1022 && memcmp(before + 1020, "\xc3\xa9", 3) == 0);
    EXPECT(haul_close(endpoint) == 0);
}

int main(void) {
    EXPECT(haul_startup() == 0);
    messages();
    struct pair pair = connected();
    haul_t stream = haul_stream_open(pair.near, HAUL_BIDI);
    EXPECT(stream > 0);
    numbers_that_are_no_handles(stream);
    haul_t identity = haul_identity_generate();
    REFUSED(haul_connect(identity, NULL, 0), HAUL_EINVAL, "no family");
    REFUSED(haul_accept(identity, NULL, NULL), HAUL_EHANDLE, "an identity where an endpoint is wanted");
    REFUSED(haul_send(pair.near, "x", 1), HAUL_EHANDLE, "a connection where");
    REFUSED(haul_stream_open(stream, HAUL_BIDI), HAUL_EHANDLE, "a stream where");
    fleets(identity);
    pointers(&pair, stream);
    options(&pair, stream);
    wrong_times(&pair);
    blocks(&pair);
    files(&pair);
    haul_t closed = stream;
    EXPECT(haul_close(stream) == 0);
    REFUSED(haul_send(closed, "x", 1), HAUL_EHANDLE, "a stream that is closed");
    EXPECT(haul_close(identity) == 0);
    /* Words for every code, and for those that are none. */
    for (int code = -100; code < 5; code++) {
        EXPECT(haul_strerror(code) != NULL && haul_strerror(code)[0] != 0);
        EXPECT(haul_fault(code) >= HAUL_FAULT_NONE && haul_fault(code) <= HAUL_FAULT_LIBRARY);
    }
    part(&pair);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
