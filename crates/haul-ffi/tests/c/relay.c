/* A copy through ssh to where UDP does not pass, met by a relay: state source host:target relay. */
#include "check.h"

int main(int count, char **arguments) {
    EXPECT(count == 5);
    EXPECT(haul_startup() == 0);
    const char *source = arguments[2];
    struct haul_copy_request request = {
        .size = sizeof request,
        .sources = &source,
        .source_count = 1,
        .destination = arguments[3],
        .state = arguments[1],
        .relay = "no relay at all",
    };
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "no relay at all");
    request.relay = arguments[4];
    request.via = "127.0.0.1";
    REFUSED(haul_copy_start(&request), HAUL_EINVAL, "via and relay");
    request.via = NULL;
    struct haul_copy_result result = {.size = sizeof result};
    haul_t job = haul_copy_start(&request);
    EXPECT(job > 0);
    EXPECT(haul_copy_wait(job, &result) == 0);
    EXPECT(result.files == 1 && result.problems == 0 && result.verified == 1);
    EXPECT(haul_close(job) == 0);
    struct haul_fleet_request fleet = {.size = sizeof fleet, .hosts = "far", .relay = "no relay at all"};
    REFUSED(haul_fleet_start(&fleet), HAUL_EINVAL, "no relay at all");
    EXPECT(haul_cleanup() == 0);
    return 0;
}
