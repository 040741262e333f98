/* Measurements: port key. A server of haul perf is there. */
#include "check.h"

struct heard {
    int calls, stop;
    uint64_t received[2];
};

static int on_interval(void *context, const struct haul_perf_interval *interval) {
    struct heard *heard = context;
    EXPECT(interval->size == sizeof *interval && interval->down <= 1 && interval->end_us > interval->start_us);
    heard->calls++;
    heard->received[interval->down] += interval->received_bytes;
    return heard->stop;
}

int main(int count, char **arguments) {
    EXPECT(count == 3 && haul_startup() == 0);
    haul_t client = haul_endpoint();
    EXPECT(haul_trust_fingerprint(client, arguments[2]) == 0 && haul_add_protocol(client, HAUL_PERF_PROTOCOL) == 0);
    be_patient(client);
    struct sockaddr_in address = loopback((unsigned short)atoi(arguments[1]));
    struct heard heard = {0};
    struct haul_perf_request request = {.size = sizeof request, .bytes = 3000000, .interval = on_interval, .context = &heard};
    struct haul_perf_result result = {.size = sizeof result};

    haul_t connection = haul_connect(client, (struct sockaddr *)&address, sizeof address);
    EXPECT(connection > 0);
    REFUSED(haul_perf(connection, NULL, &result), HAUL_EINVAL, "null");
    REFUSED(haul_perf(client, &request, &result), HAUL_EHANDLE, "a connection is wanted");
    request.streams = 1000;
    REFUSED(haul_perf(connection, &request, &result), HAUL_EINVAL, "1000 streams");
    request.streams = 2;
    request.ways = 3;
    REFUSED(haul_perf(connection, &request, &result), HAUL_EINVAL, "no way");
    request.ways = HAUL_PERF_UP;
    EXPECT(haul_perf(connection, &request, &result) == 0);
    EXPECT(result.up_bytes == 3000000 && result.up_us > 0 && result.down_bytes == 0 && result.down_us == 0);
    EXPECT(heard.calls >= 1 && heard.received[0] == 3000000 && heard.received[1] == 0);
    EXPECT(haul_close(connection) == 0);

    /* Both ways for a time, stopped by the application. */
    connection = haul_connect(client, (struct sockaddr *)&address, sizeof address);
    memset(&heard, 0, sizeof heard);
    heard.stop = 1;
    request.ways = HAUL_PERF_BOTH;
    request.bytes = 0;
    request.time_ms = 60000;
    request.interval_ms = 50;
    REFUSED(haul_perf(connection, &request, &result), HAUL_ECANCELLED, "stopped");
    EXPECT(heard.calls >= 1 && result.up_us < 60000000 && heard.received[0] + heard.received[1] > 0);
    EXPECT(haul_close(connection) == 0 && haul_close(client) == 0);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
