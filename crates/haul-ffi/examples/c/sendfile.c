/*
 * A server of files: whoever knows its port gets what it asks for from one directory.
 *
 *     sendfile DIRECTORY [PORT [FILES]]        any port and any number of files, unless it is said
 *
 * Prints where it listens and its key. A client sends a name by an ordered stream and gets the file in blocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <haul.h>

static int directory;

static int failed(const char *what) {
    fprintf(stderr, "sendfile: %s: %s\n", what, haul_error_message());
    return 1;
}

/* The name is a stranger's: a plain one only, and no link that leads elsewhere. */
static int open_plain(const char *name) {
    struct stat found;
    if (name[0] == 0 || name[0] == '.' || strchr(name, '/') != NULL) {
        return -1;
    }
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &found) < 0 || !S_ISREG(found.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Reads what is wanted. */
static int read_name(haul_t connection, char *name, size_t size) {
    haul_t request = haul_stream_accept(connection, HAUL_UNI);
    size_t length = 0;
    int64_t got = 1;
    while (length + 1 < size && (got = haul_recv(request, name + length, size - 1 - length)) > 0) {
        length += (size_t)got;
    }
    name[length] = 0;
    haul_close(request);
    return got == 0 ? 0 : -1;
}

static void *serve(void *argument) {
    haul_t connection = *(haul_t *)argument;
    free(argument);
    char name[256];
    int fd = read_name(connection, name, sizeof name) == 0 ? open_plain(name) : -1;
    if (fd < 0) {
        haul_close_with(connection, 404, "no such file");
        return NULL;
    }
    haul_t blocks = haul_stream_open(connection, HAUL_BLOCKS);
    int64_t offset = 0, sent = haul_sendfile(blocks, fd, &offset, -1, NULL, NULL);
    /* The client closes with 0 when it has written all of it, which is more than haul_flush() could know. */
    if (sent < 0 || haul_closed(connection) != HAUL_EPEERCLOSED || haul_error_peer_code() != 0) {
        failed("sending");
    } else {
        printf("sent %s, %lld bytes\n", name, (long long)sent);
        fflush(stdout);
    }
    close(fd);
    haul_close(blocks);
    haul_close(connection);
    return NULL;
}

/* Listens on every address and gives the endpoint; prints its port and its key. */
static haul_t listen_on(int port) {
    haul_t identity = haul_identity_generate(), endpoint = haul_endpoint();
    char key[HAUL_FINGERPRINT_SIZE];
    struct sockaddr_in6 address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons((uint16_t)port);
    if (haul_fingerprint(identity, key, sizeof key) < 0 || haul_set_identity(endpoint, identity) < 0 ||
        haul_trust_anyone(endpoint) < 0 || haul_listen(endpoint, (struct sockaddr *)&address, length) < 0 ||
        haul_getsockname(endpoint, (struct sockaddr *)&address, &length) < 0) {
        return haul_error_code();
    }
    printf("listening on port %d, key %s\n", ntohs(address.sin6_port), key);
    fflush(stdout);
    return endpoint;
}

/* A whole number up to `most`, or -1. */
static int number(const char *text, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == 0 && value >= 0 && value <= most ? (int)value : -1;
}

int main(int count, char **arguments) {
    int port = count > 2 ? number(arguments[2], 65535) : 0, files = count > 3 ? number(arguments[3], INT_MAX) : -1;
    if (count < 2 || count > 4 || port < 0 || (count > 3 && files < 0)) {
        fprintf(stderr, "usage: sendfile DIRECTORY [PORT [FILES]]\n");
        return 2;
    }
    directory = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fprintf(stderr, "sendfile: %s: %s\n", arguments[1], strerror(errno));
        return 1;
    }
    if (haul_startup() < 0) {
        return failed("startup");
    }
    haul_t endpoint = listen_on(port);
    if (endpoint < 0) {
        return failed("listening");
    }
    for (int served = 0; files < 0 || served < files; served++) {
        haul_t *connection = malloc(sizeof *connection);
        pthread_t thread;
        if (!connection || (*connection = haul_accept(endpoint, NULL, NULL)) < 0) {
            return failed("accepting");
        }
        if (pthread_create(&thread, NULL, serve, connection) != 0) {
            return 1;
        }
        if (files < 0) {
            pthread_detach(thread);
        } else {
            pthread_join(thread, NULL);
        }
    }
    close(directory);
    return haul_cleanup() < 0;
}
