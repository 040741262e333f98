/* Signals: they are the application's, and its threads'. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static pthread_t application;
static atomic_int taken, elsewhere;

static void on_signal(int number) {
    (void)number;
    atomic_fetch_add(&taken, 1);
    if (!pthread_equal(pthread_self(), application)) {
        atomic_fetch_add(&elsewhere, 1);
    }
}

static void (*action_of(int number))(int) {
    struct sigaction now;
    EXPECT(sigaction(number, NULL, &now) == 0);
    return now.sa_handler;
}

/* Sends signals to the process: any thread that does not block them may get them. */
static void *disturb(void *argument) {
    (void)argument;
    for (int i = 0; i < 200; i++) {
        EXPECT(kill(getpid(), SIGUSR1) == 0);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return NULL;
}

int main(void) {
    application = pthread_self();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    sigset_t before, after;
    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &before) == 0);

    /* Whoever started this program may have others ignored than by default, as shells do with SIGINT for what runs behind. */
    static const int watched[] = {SIGUSR1, SIGPIPE, SIGINT, SIGCHLD};
    void (*were[sizeof watched / sizeof *watched])(int);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        were[i] = action_of(watched[i]);
    }

    EXPECT(haul_startup() == 0);
    struct pair pair = connected();
    haul_t stream = haul_stream_open(pair.near, HAUL_BIDI);
    send_all(stream, "x", 1);
    haul_t far = haul_stream_accept(pair.far, HAUL_BIDI);

    /* Nothing of the process was changed. */
    EXPECT(pthread_sigmask(SIG_SETMASK, NULL, &after) == 0);
    for (int number = 1; number < 32; number++) {
        EXPECT(sigismember(&before, number) == sigismember(&after, number));
    }
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        EXPECT(action_of(watched[i]) == were[i]);
    }

    /* A wait goes on when a handler returns, and the handler ran in the application's thread: the disturbing one blocks the signal. */
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    EXPECT(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, disturb, NULL) == 0);
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) == 0);
    EXPECT(haul_setopt(far, HAUL_OPT_RCVTIMEO, 150) == 0);
    char buffer[2];
    EXPECT(haul_recv(far, buffer, 1) == 1);
    REFUSED(haul_recv(far, buffer, 1), HAUL_ETIMEDOUT, "timed out");
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(atomic_load(&taken) > 0);
    EXPECT(atomic_load(&elsewhere) == 0);

    /* One that the application's threads block stays pending: no thread of the library takes it instead. */
    EXPECT(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    int before_it = atomic_load(&taken);
    EXPECT(kill(getpid(), SIGUSR1) == 0);
    REFUSED(haul_recv(far, buffer, 1), HAUL_ETIMEDOUT, "timed out");
    EXPECT(atomic_load(&taken) == before_it && atomic_load(&elsewhere) == 0);
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL) == 0);
    EXPECT(atomic_load(&taken) == before_it + 1 && atomic_load(&elsewhere) == 0);

    /* A peer that is gone is an answer, not a SIGPIPE. */
    EXPECT(haul_close(pair.far) == 0);
    REFUSED(haul_closed(pair.near), HAUL_EPEERCLOSED, "closed by the peer");
    REFUSED(haul_send(stream, "x", 1), HAUL_EPEERCLOSED, "closed by the peer");
    pair.far = haul_endpoint();
    EXPECT(haul_close(stream) == 0 && haul_close(far) == 0);
    part(&pair);
    EXPECT(haul_cleanup() == 0);
    return 0;
}
