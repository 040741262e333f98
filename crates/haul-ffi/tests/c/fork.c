/* Processes: a child is told that it is one, its parent goes on; one that is made before the first handle may use the library; exec inherits nothing. */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void reap(pid_t child, int wanted) {
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

static void child_uses_the_library(void) {
    EXPECT(haul_startup() == 0);
    struct pair pair = connected();
    part(&pair);
    EXPECT(haul_cleanup() == 0 && haul_cleanup() == 0);
}

static void child_is_refused(struct pair *pair, haul_t stream) {
    char byte;
    REFUSED(haul_startup(), HAUL_EFORK, "forked");
    REFUSED(haul_send(stream, "x", 1), HAUL_EFORK, "exec");
    REFUSED(haul_recv(stream, &byte, 1), HAUL_EFORK, "forked");
    REFUSED(haul_endpoint(), HAUL_EFORK, "forked");
    REFUSED(haul_close(pair->near), HAUL_EFORK, "forked");
    REFUSED(haul_close(stream), HAUL_EFORK, "forked");
    REFUSED(haul_cleanup(), HAUL_EFORK, "forked");
    EXPECT(haul_fault(HAUL_EFORK) == HAUL_FAULT_CALLER);
}

/* In the program that exec starts: no descriptor but the standard ones and the one that looks. */
static int count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    EXPECT(directory != NULL);
    int others = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int fd = atoi(entry->d_name);
        char target[256];
        if (entry->d_name[0] == '.' || fd == dirfd(directory)) {
            continue;
        }
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        EXPECT(length > 0);
        target[length] = 0;
        /* Whoever runs the test may have left files open; the library makes sockets and eventfds. */
        if (fd > 2 && (strncmp(target, "socket:", 7) == 0 || strstr(target, "eventfd") != NULL)) {
            fprintf(stderr, "inherited %d: %s\n", fd, target);
            others++;
        }
    }
    closedir(directory);
    return others;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "descriptors") == 0) {
        return count_descriptors();
    }
    EXPECT(haul_startup() == 0);
    pid_t early = fork();
    EXPECT(early >= 0);
    if (early == 0) {
        child_uses_the_library();
        _exit(0);
    }
    reap(early, 0);

    struct pair pair = connected();
    haul_t stream = haul_stream_open(pair.near, HAUL_BIDI);
    send_all(stream, "before", 6);
    haul_t far = haul_stream_accept(pair.far, HAUL_BIDI);
    EXPECT(haul_fd(far, HAUL_IN) >= 0);
    pid_t late = fork();
    EXPECT(late >= 0);
    if (late == 0) {
        child_is_refused(&pair, stream);
        /* Not by _exit(), before which valgrind looks for lost memory: what only the stacks of its parent's threads referred to is lost in this process. */
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    reap(late, 0);
    pid_t other = fork();
    EXPECT(other >= 0);
    if (other == 0) {
        execl(arguments[0], arguments[0], "descriptors", (char *)NULL);
        _exit(127);
    }
    reap(other, 0);
    /* The parent's connection has not heard of any of that. */
    send_all(stream, " after", 6);
    EXPECT(haul_shutdown(stream, HAUL_SHUT_WR) == 0);
    char buffer[16];
    EXPECT(read_to_end(far, buffer, sizeof buffer) == 12 && memcmp(buffer, "before after", 12) == 0);
    EXPECT(haul_close(stream) == 0 && haul_close(far) == 0);
    part(&pair);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
