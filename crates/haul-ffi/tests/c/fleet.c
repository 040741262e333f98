/* A fleet of daemons: state hosts source sent back. Sends `source` to two of them each file, fetches it from all, and is misused and stopped in between. */
#include "check.h"

struct heard {
    int progress, servers, problems, absent, statuses, stop;
    struct haul_copy_progress last;
    uint64_t bytes;
};

static int on_progress(void *context, const struct haul_copy_progress *progress) {
    struct heard *heard = context;
    EXPECT(progress->size == sizeof *progress);
    heard->progress++;
    heard->last = *progress;
    return heard->stop;
}

static void on_problem(void *context, const char *message) {
    EXPECT(message[0]);
    ((struct heard *)context)->problems++;
}

static void on_server(void *context, const struct haul_fleet_server *server) {
    struct heard *heard = context;
    EXPECT(server->size == sizeof *server && server->name[0] && server->state <= HAUL_FLEET_DOWN);
    heard->servers++;
    heard->bytes = server->bytes;
}

static void on_absent(void *context, const char *name, const char *why) {
    EXPECT(name[0] && why[0]);
    ((struct heard *)context)->absent++;
}

static void on_status(void *context, const struct haul_fleet_member *status) {
    EXPECT(status->size == sizeof *status && status->name[0]);
    EXPECT(status->problem == NULL && status->processors > 0 && status->memory_total_bytes > status->memory_available_bytes);
    ((struct heard *)context)->statuses++;
}

int main(int count, char **arguments) {
    EXPECT(count == 6);
    EXPECT(haul_startup() == 0);
    struct heard heard = {0};
    struct haul_fleet_request request = {
        .size = sizeof request, .hosts = arguments[2], .way = "daemon", .timeout_ms = 20000, .state = arguments[1],
        .absent = on_absent, .context = &heard,
    };

    /* What makes no sense. */
    REFUSED(haul_fleet_start(NULL), HAUL_EINVAL, "null pointer");
    struct haul_fleet_request wrong = {.size = sizeof wrong, .hosts = "a/b"};
    REFUSED(haul_fleet_start(&wrong), HAUL_EINVAL, "a/b");
    wrong.hosts = "host", wrong.way = "pigeon";
    REFUSED(haul_fleet_start(&wrong), HAUL_EINVAL, "pigeon");
    REFUSED(haul_fleet_attach("nobody-has-this-name"), HAUL_EINVAL, "no fleet named");
    REFUSED(haul_fleet_attach(NULL), HAUL_EINVAL, "null pointer");

    haul_t fleet = haul_fleet_start(&request);
    EXPECT(fleet > 0 && heard.absent == 0);
    REFUSED(haul_send(fleet, "x", 1), HAUL_EHANDLE, "a fleet where");
    EXPECT(haul_fleet_status(fleet, on_status, &heard) == 3 && heard.statuses == 3);
    EXPECT(haul_fleet_status(fleet, NULL, NULL) == 3);
    haul_t identity = haul_identity_generate();
    REFUSED(haul_fleet_status(identity, NULL, NULL), HAUL_EHANDLE, "where a fleet");
    EXPECT(haul_close(identity) == 0);

    /* There: each file on two of the three. */
    const char *sources[] = {arguments[3]};
    struct haul_fleet_job job = {
        .size = sizeof job, .sources = sources, .source_count = 1, .destination = arguments[4], .flags = HAUL_COPY_RECURSIVE | HAUL_COPY_PRESERVE,
        .replicas = 2, .progress = on_progress, .problem = on_problem, .server = on_server, .context = &heard,
    };
    struct haul_copy_result result = {.size = sizeof result};
    haul_t put = haul_fleet_upload(fleet, &job);
    EXPECT(put > 0);
    struct haul_pollfd over = {put, HAUL_IN, 0};
    EXPECT(haul_poll(&over, 1, 60000) == 1 && over.revents == HAUL_IN);
    EXPECT(haul_copy_wait(put, &result) == 0 && result.problems == 0 && result.files >= 4 && haul_close(put) == 0);
    EXPECT(heard.progress >= 1);
    job.replicas = 4;
    put = haul_fleet_upload(fleet, &job);
    REFUSED(haul_copy_wait(put, NULL), HAUL_EINVAL, "4 replicas on 3");
    EXPECT(haul_close(put) == 0);

    /* And back, from all of them: two jobs at once, one of which finds nothing. */
    char name[512];
    snprintf(name, sizeof name, "%s/source", arguments[4]);
    const char *fetched[] = {name}, *missing[] = {"no such thing"};
    memset(&heard, 0, sizeof heard);
    job.sources = fetched, job.destination = arguments[5];
    haul_t get = haul_fleet_download(fleet, &job);
    struct haul_fleet_job other = job;
    other.sources = missing, other.progress = NULL, other.server = NULL;
    haul_t nothing = haul_fleet_download(fleet, &other);
    EXPECT(get > 0 && nothing > 0);
    EXPECT(haul_copy_wait(get, &result) == 0);
    EXPECT(result.files == 4 && result.bytes == 4 * 300000 && result.problems == 0 && result.verified == 1);
    EXPECT(haul_copy_wait(nothing, &result) == 0 && result.files == 0 && result.problems >= 1 && heard.problems >= 1);
    EXPECT(haul_close(get) == 0 && haul_close(nothing) == 0);
    EXPECT(heard.last.files_found == 4 && heard.servers >= 3);

    /* Cancelled by a callback, and by closing. */
    job.rate_limit_bps = 1000000, job.flags |= HAUL_COPY_NO_RESUME, job.destination = arguments[1];
    heard.stop = 1;
    get = haul_fleet_download(fleet, &job);
    EXPECT(haul_copy_wait(get, NULL) == HAUL_ECANCELLED && haul_close(get) == 0);
    heard.stop = 0;
    get = haul_fleet_download(fleet, &job);
    EXPECT(haul_cancel(get) == 0 && haul_copy_wait(get, NULL) == HAUL_ECANCELLED && haul_close(get) == 0);

    /* The fleet may be closed before its job. */
    job.rate_limit_bps = 0, job.destination = arguments[5];
    get = haul_fleet_download(fleet, &job);
    EXPECT(haul_fleet_set_dir(fleet, NULL) == 0 && haul_close(fleet) == 0);
    EXPECT(haul_copy_wait(get, &result) == 0 && haul_close(get) == 0);
    REFUSED(haul_fleet_status(fleet, NULL, NULL), HAUL_EHANDLE, "a fleet that is closed");

    /* Stopped, it has nobody left. Daemons were not started by it, and stay. */
    fleet = haul_fleet_start(&request);
    EXPECT(fleet > 0 && haul_fleet_status(fleet, NULL, NULL) == 3);
    EXPECT(haul_fleet_stop(fleet) == 0 && haul_fleet_status(fleet, NULL, NULL) == 0);
    get = haul_fleet_download(fleet, &job);
    EXPECT(get > 0);
    REFUSED(haul_copy_wait(get, NULL), HAUL_EUNREACHED, "");
    EXPECT(haul_close(get) == 0 && haul_fleet_stop(fleet) == 0 && haul_close(fleet) == 0);
    REFUSED(haul_fleet_stop(fleet), HAUL_EHANDLE, "a fleet that is closed");
    fleet = haul_fleet_start(&request);
    EXPECT(fleet > 0 && haul_fleet_status(fleet, NULL, NULL) == 3 && haul_close(fleet) == 0);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
