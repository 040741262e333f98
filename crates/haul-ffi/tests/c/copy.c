/* Copies: state source haul://host:port/root/target back. Pushes the source, pulls it to `back`, and is cancelled, refused and closed in between. */
#include "check.h"

struct heard {
    int calls, problems, stop;
    struct haul_copy_progress last;
    char problem[256];
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

    /* A daemon that is not known, and a root that it has not. */
    request.state = arguments[4];
    job = haul_copy_start(&request);
    EXPECT(haul_copy_wait(job, NULL) == HAUL_EUNTRUSTED && haul_close(job) == 0);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
