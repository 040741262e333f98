/* Copies: state source haul://host:port/root/target back. Pushes the source, pulls it to `back`, and is cancelled, refused and closed in between. */
#include "check.h"

#include <stdatomic.h>

struct heard {
    int calls, problems, stop;
    struct haul_copy_progress last;
    char problem[256];
    int would[6];
    uint64_t would_bytes;
};

static int on_progress(void *context, const struct haul_copy_progress *progress) {
    struct heard *heard = context;
    EXPECT(progress->size == sizeof *progress);
    EXPECT(progress->bytes_arrived + progress->bytes_kept <= progress->bytes_found || !progress->complete);
    heard->calls++;
    heard->last = *progress;
    return heard->stop;
}

static void on_problem(void *context, const char *message) {
    struct heard *heard = context;
    heard->problems++;
    snprintf(heard->problem, sizeof heard->problem, "%s", message);
}

static void on_would(void *context, int what, const char *path, uint64_t bytes) {
    struct heard *heard = context;
    EXPECT(what >= HAUL_WOULD_COPY && what <= HAUL_WOULD_DELETE && path[0] != 0);
    heard->would[what]++;
    heard->would_bytes += bytes;
}

/* Closes its job in a callback. */
struct closes {
    int at; /* in which one */
    _Atomic haul_t job;
    atomic_int calls, closed;
};

static int on_progress_close(void *context, const struct haul_copy_progress *progress) {
    struct closes *closes = context;
    (void)progress;
    if (atomic_fetch_add(&closes->calls, 1) + 1 < closes->at) {
        return 0;
    }
    while (atomic_load(&closes->job) == 0) {
        usleep(1000);
    }
    EXPECT(haul_close(atomic_load(&closes->job)) == 0);
    atomic_store(&closes->closed, 1);
    return 0;
}

int main(int count, char **arguments) {
    EXPECT(count == 5);
    EXPECT(haul_startup() == 0);
    char remote[512];
    struct heard heard = {0};
    const char *source = arguments[2];
    struct haul_copy_request request = {
        .size = sizeof request,
        .sources = &source,
        .source_count = 1,
        .destination = arguments[3],
        .flags = HAUL_COPY_RECURSIVE,
        .state = arguments[1],
        .progress = on_progress,
        .problem = on_problem,
        .context = &heard,
    };
    struct haul_copy_result result = {.size = sizeof result};

    /* There. */
    haul_t job = haul_copy_start(&request);
    EXPECT(job > 0);
    struct haul_pollfd over = {job, HAUL_IN, 0};
    EXPECT(haul_poll(&over, 1, 60000) == 1 && over.revents == HAUL_IN);
    EXPECT(haul_copy_wait(job, &result) == 0);
    EXPECT(result.files == 2 && result.directories >= 1 && result.problems == 0 && result.verified == 1);
    EXPECT(result.bytes == (5u << 20) + 7 && result.elapsed_us > 0);
    EXPECT(heard.calls >= 1 && heard.last.complete && heard.last.files_found == 2 && heard.last.bytes_found == result.bytes);
    EXPECT(haul_copy_wait(job, NULL) == 0);
    REFUSED(haul_send(job, "x", 1), HAUL_EHANDLE, "a job where");
    EXPECT(haul_close(job) == 0);

    /* Again: nothing is needed. */
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_PRESERVE;
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0 && haul_close(job) == 0);
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_PRESERVE | HAUL_COPY_SKIP_SAME;
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0);
    EXPECT(result.files == 0 && result.skipped_files == 2 && result.bytes == 0);
    EXPECT(haul_close(job) == 0);

    /* What is gone at the source, what is not wanted, and what counts as the same: first as a dry run. */
    const char *unwanted[] = {"large"};
    request.exclude = unwanted;
    request.exclude_count = 1;
    request.would = on_would;
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_DELETE | HAUL_COPY_CHECKSUM | HAUL_COPY_DRY_RUN;
    char other[600], inside[600];
    snprintf(other, sizeof other, "%s/.", source);
    snprintf(inside, sizeof inside, "%s/mirror", arguments[3]);
    const char *content = other;
    request.sources = &content;
    request.destination = inside;
    memset(&heard, 0, sizeof heard);
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0 && haul_close(job) == 0);
    EXPECT(heard.would[HAUL_WOULD_DELETE] == 1 && result.removed == 1 && heard.would[HAUL_WOULD_COPY] == 1 && heard.would_bytes == 7);
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_DELETE | HAUL_COPY_CHECKSUM;
    request.max_deletes = 1;
    request.retries = 1;
    /* Nobody listens there by TCP. */
    request.transport = "tcp";
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == HAUL_EUNREACHED && haul_close(job) == 0);
    request.transport = "udp";
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0 && haul_close(job) == 0);
    EXPECT(result.removed == 1 && result.files == 1 && result.problems == 0);
    request.via = "127.0.0.1";
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "via and transport");
    request.transport = NULL;
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0 && haul_close(job) == 0 && result.files == 0 && result.skipped_files == 1);
    request.via = "no-such-interface:sometimes";
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "");
    request.via = NULL;
    request.transport = "pigeon";
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "pigeon");
    request.transport = NULL;
    request.flags = HAUL_COPY_DELETE;
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "HAUL_COPY_DELETE needs HAUL_COPY_RECURSIVE");
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_CHECKSUM | HAUL_COPY_SIZE_ONLY;
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "exclude each other");
    request.exclude_count = request.retries = request.max_deletes = 0;
    /* A program that was compiled with the first header. */
    request.flags = HAUL_COPY_RECURSIVE;
    request.size = offsetof(struct haul_copy_request, exclude);
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0 && haul_close(job) == 0 && result.files == 2);
    request.size = sizeof request;

    /* And back, with a name that is not there. */
    snprintf(remote, sizeof remote, "%s/source", arguments[3]);
    char missing[512];
    snprintf(missing, sizeof missing, "%s/missing", arguments[3]);
    const char *sources[] = {remote, missing};
    request.sources = sources;
    request.source_count = 2;
    request.destination = arguments[4];
    request.flags = HAUL_COPY_RECURSIVE;
    memset(&heard, 0, sizeof heard);
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, &result) == 0);
    EXPECT(result.files == 2 && result.problems == 1 && heard.problems == 1 && strstr(heard.problem, "missing") != NULL);
    EXPECT(heard.last.problems == 1);
    EXPECT(haul_close(job) == 0);

    /* Stopped by a callback; by a call; by closing. */
    request.rate_limit_bps = 8000000;
    request.source_count = 1;
    request.flags = HAUL_COPY_RECURSIVE | HAUL_COPY_NO_RESUME;
    heard.stop = 1;
    job = haul_copy_start(&request);
    REFUSED(haul_copy_wait(job, NULL), HAUL_ECANCELLED, "interrupted");
    EXPECT(haul_close(job) == 0);
    heard.stop = 0;
    job = haul_copy_start(&request);
    EXPECT(haul_setopt(job, HAUL_OPT_RCVTIMEO, 20) == 0);
    REFUSED(haul_copy_wait(job, NULL), HAUL_ETIMEDOUT, "timed out");
    EXPECT(haul_cancel(job) == 0 && haul_setopt(job, HAUL_OPT_RCVTIMEO, -1) == 0);
    EXPECT(haul_copy_wait(job, NULL) == HAUL_ECANCELLED);
    EXPECT(haul_close(job) == 0);
    job = haul_copy_start(&request);
    EXPECT(haul_close(job) == 0);

    /* By a callback: the first is the job's own thread's, most others are not. It hears no more. */
    static struct closes closes[] = {{.at = 1}, {.at = 4}};
    request.progress = on_progress_close;
    request.problem = NULL;
    for (int which = 0; which < 2; which++) {
        request.context = &closes[which];
        job = haul_copy_start(&request);
        EXPECT(job > 0);
        atomic_store(&closes[which].job, job);
        for (int turn = 0; turn < 6000 && !atomic_load(&closes[which].closed); turn++) {
            usleep(10000);
        }
        EXPECT(atomic_load(&closes[which].closed));
        REFUSED(haul_copy_wait(job, NULL), HAUL_EHANDLE, "a job that is closed");
    }
    request.progress = on_progress;
    request.problem = on_problem;
    request.context = &heard;

    /* A daemon that is not known, and a root that it has not. */
    request.state = arguments[4];
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, NULL) == HAUL_EUNTRUSTED && haul_close(job) == 0);
    EXPECT(atomic_load(&closes[0].calls) == 1 && atomic_load(&closes[1].calls) == 4);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
