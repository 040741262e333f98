/*
 * haul: reliable, encrypted transport over UDP for long fat networks, for programs in C and C++.
 *
 * Copyright: the haul maintainers. Licence: MIT OR Apache-2.0.
 *
 * The manual pages of section 3 are made of this file: a comment that begins with a group's name opens the group, the one above a
 * prototype is what its page says. docs/reference/c.md is the guide, with the smallest program and the table from UDT.
 */
#ifndef HAUL_H
#define HAUL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @group haul_startup: begin and end with the library
 *
 * Everything is named by a handle, a positive number of type haul_t. A handle that is wrong, of another kind, or closed is answered with
 * HAUL_EHANDLE, never with a crash: numbers are not used again. Zero is never a handle.
 *
 * Every function that can fail gives a negative code, and has a message about it for the calling thread: see haul_error_message(3).
 *
 * THREADS. Every function may be called by every thread at any time, with the same handles; haul_cleanup() is the one to be called when the
 * others are done. Two threads may send and receive on one stream. Two that send on one ordered stream at once both succeed, and
 * their bytes are mixed; blocks never are. haul_close() ends the waiting of other threads at the same handle, which get HAUL_ECLOSED.
 *
 * FORK. The library's threads do not live in the child: every call there is HAUL_EFORK, without touching the parent's connections. A child that
 * wants them runs another program (exec), or is made before the first handle. Descriptors are closed by exec.
 *
 * SIGNALS. The library takes none, changes no handler, and blocks all signals in its own threads. A handler that returns does not end a wait;
 * no function may be called from inside of one. Write to a pipe there, and poll it beside haul_fd(3).
 */

/** A thing of the library: identity, endpoint, connection, stream, block, job. */
typedef int64_t haul_t;

/** The version of this header. Until 1.0 the second number is part of the library's soname. */
#define HAUL_VERSION_MAJOR 0
#define HAUL_VERSION_MINOR 1

/** Begins. To be called before anything else, any number of times; each wants its haul_cleanup(). */
int haul_startup(void);

/** Ends. The last one closes every handle, and with them all connections at once; what was not acknowledged may be lost. Peers of a program that
 * ends without it hear nothing, and notice by HAUL_OPT_IDLE_TIMEOUT. */
int haul_cleanup(void);

/** The version of the library, such as "0.1.0". Needs no haul_startup(). */
const char *haul_version(void);

/** @group haul_error_message: what went wrong
 *
 * Codes are sorted by who is at fault; the message names the thing, in 1023 bytes at most. It is in one place as long as the thread lives: the
 * thread's next failure writes another one there. What is in it of a peer's words is made printable.
 */

/* The caller's. */
#define HAUL_EHANDLE (-1)   /* no handle, or closed, or not of a kind that can do this */
#define HAUL_EINVAL (-2)    /* an argument: a null pointer, a number out of range */
#define HAUL_ESTATE (-3)    /* not at this time: not listening, no identity, finished already */
#define HAUL_ESTARTUP (-4)  /* haul_startup() was not called */
#define HAUL_EFORK (-5)     /* this process was forked from the one whose handles these are */
#define HAUL_ECLOSED (-6)   /* closed by this side, perhaps by another thread meanwhile */
#define HAUL_ECANCELLED (-7) /* a callback, or haul_cancel(), said stop */
/* Nobody's. */
#define HAUL_EAGAIN (-10)    /* would have to wait, and the timeout is 0 */
#define HAUL_ETIMEDOUT (-11) /* waited for as long as the timeout says */
/* The system's: haul_error_errno() has its number. */
#define HAUL_ESYSTEM (-20)
/* The network's. */
#define HAUL_EUNREACHED (-30) /* no answer at all: nobody listens there, or UDP is blocked on the way */
#define HAUL_ELOST (-31)      /* the peer was heard, and has been silent for too long */
/* The peer's: haul_error_peer_code() has the number that its application gave. */
#define HAUL_EUNTRUSTED (-40)  /* its key is not one that is trusted here */
#define HAUL_EREFUSED (-41)    /* it refuses: our key, the protocol, the request */
#define HAUL_EPEERCLOSED (-42) /* its application has closed the connection, or it has restarted */
#define HAUL_ERESET (-43)      /* it has given up sending on this stream */
#define HAUL_ESTOPPED (-44)    /* it reads this stream no more */
#define HAUL_EPROTOCOL (-45)   /* it broke the protocol, or speaks another version */
/* The library's: a bug. It is as safe to go on as it is to close the handle. */
#define HAUL_EINTERNAL (-90)

/** What haul_fault() says. */
#define HAUL_FAULT_NONE 0
#define HAUL_FAULT_CALLER 1
#define HAUL_FAULT_SYSTEM 2
#define HAUL_FAULT_NETWORK 3
#define HAUL_FAULT_PEER 4
#define HAUL_FAULT_LIBRARY 5

/** A few words for a code, such as "not trusted". Never null. */
const char *haul_strerror(int code);

/** Who is at fault: one of HAUL_FAULT_*. */
int haul_fault(int code);

/** The code of this thread's last failure; 0 if there was none. */
int haul_error_code(void);

/** The message of this thread's last failure; "" if there was none. Never null. */
const char *haul_error_message(void);

/** The number with which the peer's application closed, reset or stopped, where the last failure was that; else 0. */
uint64_t haul_error_peer_code(void);

/** The system's number (errno) of the last failure, where it was HAUL_ESYSTEM and there is one; else 0. */
int haul_error_errno(void);

/** @group haul_identity: keys
 *
 * A side proves who it is by an Ed25519 key pair, and is known by its fingerprint: "SHA256:" and 43 letters. A server has one; a client needs one
 * where the server wants to know who it is.
 */

/** Room for a fingerprint and its zero. */
#define HAUL_FINGERPRINT_SIZE 51

/** A new key pair. */
haul_t haul_identity_generate(void);

/** The key pair in `directory`, made there if there is none, readable by its owner alone. Null is the directory of
 * the haul command, so that a program is the same peer as its user's commands: `haul key show` tells its fingerprint. */
haul_t haul_identity_load(const char *directory);

/** The key pair in a PKCS #8 document (DER) of `length` bytes. */
haul_t haul_identity_from_pkcs8(const void *der, size_t length);

/** Writes the secret PKCS #8 document to `buffer` and gives its length. With room for less it is HAUL_EINVAL and nothing is written; 128 bytes are
 * enough. */
int64_t haul_identity_pkcs8(haul_t identity, void *buffer, size_t size);

/** Writes the fingerprint of an identity, or of the key that a connection's peer has proved to hold, with its zero: HAUL_FINGERPRINT_SIZE bytes. A
 * client that showed no key is HAUL_ESTATE. */
int haul_fingerprint(haul_t identity_or_connection, char *buffer, size_t size);

/** @group haul_endpoint: a UDP socket that connections are made on
 *
 * As with sockets: haul_endpoint(), then options, identity and trust, then haul_listen() and haul_accept(), or haul_connect(). What is set holds for
 * what is listened for and connected to afterwards. One endpoint may do both, and has any number of connections.
 *
 * Whom to trust must be said: without it haul_listen() and haul_connect() are HAUL_ESTATE.
 */

/** A new endpoint, not bound yet. */
haul_t haul_endpoint(void);

/** Sets who we are. The identity may be closed afterwards. */
int haul_set_identity(haul_t endpoint, haul_t identity);

/** Trusts peers with this fingerprint, besides those that are trusted already. */
int haul_trust_fingerprint(haul_t endpoint, const char *fingerprint);

/** Trusts everybody. A server then has clients that may be anonymous; a client may be talking to somebody in the middle. */
int haul_trust_anyone(haul_t endpoint);

/** Decides on a fingerprint: not 0 is trusted. Called by a thread of the library, in the middle of a handshake: it must return soon and call no
 * function of the library. */
typedef int (*haul_trust_fn)(void *context, const char *fingerprint);

/** Trusts whom `decide` trusts. It may be called until the endpoint and all of its connections are closed. */
int haul_trust_callback(haul_t endpoint, haul_trust_fn decide, void *context);

/** Adds an application protocol, the preferred one first. Two sides that name protocols and share none do not connect. */
int haul_add_protocol(haul_t endpoint, const char *name);

/** Binds, to connect only. Port 0 is any free one. Without it haul_connect() binds to any address of the peer's family. */
int haul_bind(haul_t endpoint, const struct sockaddr *address, socklen_t length);

/** Binds, to accept and to connect. The address :: serves IPv4 too. Needs an identity. */
int haul_listen(haul_t endpoint, const struct sockaddr *address, socklen_t length);

/** Waits for a connection, as HAUL_OPT_RCVTIMEO says, and gives its handle. `address` and `length` may be null; else they are as for accept(2).
 * An IPv4 peer of an endpoint at :: shows as IPv4. */
haul_t haul_accept(haul_t endpoint, struct sockaddr *address, socklen_t *length);

/** Connects, waits for the handshake, at most as HAUL_OPT_CONNTIMEO says, and gives the connection's handle. */
haul_t haul_connect(haul_t endpoint, const struct sockaddr *address, socklen_t length);

/** As haul_connect(), without waiting: the connection is ready for HAUL_OUT when it is decided, and haul_connect_finish() says how. */
haul_t haul_connect_start(haul_t endpoint, const struct sockaddr *address, socklen_t length);

/** 0 if a connection is made, HAUL_EAGAIN while it is being made, else why it was not. */
int haul_connect_finish(haul_t connection);

/** The address that an endpoint is bound to. */
int haul_getsockname(haul_t endpoint, struct sockaddr *address, socklen_t *length);

/** Where a connection's peer is at present: that may change. */
int haul_getpeername(haul_t connection, struct sockaddr *address, socklen_t *length);

/** Writes the application protocol agreed on, with its zero; "" if none was. HAUL_EINVAL if `size` is too small. */
int haul_protocol(haul_t connection, char *buffer, size_t size);

/** Closes any handle. What that does:
 * - a connection is closed at once with code 0: what the peer has not acknowledged may be lost (see haul_flush()), and its streams are over;
 * - a stream that was not ended by haul_shutdown() is reset, so that half a message is never taken for a whole one;
 * - an endpoint accepts no more; its connections live on;
 * - a block goes back to its stream; a job is cancelled and waited for. Closed by one of its own callbacks it is not waited for, and calls no more.
 * Closing twice is HAUL_EHANDLE. */
int haul_close(haul_t handle);

/** Closes a connection with a code and a reason (may be null) that the peer gets to know. The handle is closed with it. */
int haul_close_with(haul_t connection, uint64_t code, const char *reason);

/** Waits until a connection is over, as HAUL_OPT_RCVTIMEO says; gives the code of why (HAUL_ECLOSED, HAUL_EPEERCLOSED, HAUL_ELOST, ..), or
 * HAUL_ETIMEDOUT or HAUL_EAGAIN while it is not. */
int haul_closed(haul_t connection);

/** @group haul_stream: bytes in order
 *
 * A connection has any number of streams, which cost little and do not hold each other up. Both sides open them; the peer hears of one with its first
 * byte. Bulk data goes faster in blocks: see haul_blocks(3).
 */

/** Kinds of streams: both ways; from the side that opens it; blocks from the side that opens it. */
#define HAUL_BIDI 0
#define HAUL_UNI 1
#define HAUL_BLOCKS 2

/** Opens a stream: HAUL_BIDI, HAUL_UNI or HAUL_BLOCKS. Waits, as HAUL_OPT_SNDTIMEO says, while as many are open as the peer allows. */
haul_t haul_stream_open(haul_t connection, int kind);

/** Waits, as HAUL_OPT_RCVTIMEO says, for a stream of that kind which the peer opens. */
haul_t haul_stream_accept(haul_t connection, int kind);

/** Sends all `length` bytes, waiting as HAUL_OPT_SNDTIMEO says, and gives their number; fewer if the time was over before, and HAUL_EAGAIN or
 * HAUL_ETIMEDOUT if it was before the first. The bytes are copied. */
int64_t haul_send(haul_t stream, const void *data, size_t length);

/** Receives 1 to `size` bytes, waiting as HAUL_OPT_RCVTIMEO says, and gives their number; 0 is the end. */
int64_t haul_recv(haul_t stream, void *buffer, size_t size);

/** What haul_shutdown() ends. */
#define HAUL_SHUT_RD 0
#define HAUL_SHUT_WR 1
#define HAUL_SHUT_RDWR 2

/** Ends a direction of a stream. HAUL_SHUT_WR: nothing more will be sent, the peer reads the end after what was. HAUL_SHUT_RD: nothing more will be
 * read, the peer's sender gets HAUL_ESTOPPED. Returns at once. */
int haul_shutdown(haul_t stream, int how);

/** Waits, as HAUL_OPT_SNDTIMEO says, until the peer's transport has all of a stream that was ended by haul_shutdown(). That its application has read
 * it only the application can say; one that closes the connection as soon as it has may be faster than the acknowledgement: then this is HAUL_EPEERCLOSED. */
int haul_flush(haul_t stream);

/** Gives up sending: what was not sent is dropped, the peer's reader gets HAUL_ERESET with this code. */
int haul_reset(haul_t stream, uint64_t code);

/** Reads no more: the peer's sender gets HAUL_ESTOPPED with this code. */
int haul_stop(haul_t stream, uint64_t code);

/** @group haul_blocks: blocks in any order
 *
 * A stream of kind HAUL_BLOCKS carries blocks of 1 byte to HAUL_BLOCK_MAX. Each arrives whole, as soon as it is complete, so that a lost packet delays one
 * block and not the stream: the way for bulk data. Blocks are numbered from 0 in the order of sending.
 *
 * To send without a copy: haul_block_alloc(), fill `data`, haul_block_submit(). To receive: haul_block_recv(), then haul_block_free(), which lets the peer
 * send as much again; a receiver that keeps its blocks stops the sender.
 */

/** Bytes of the largest block: 2 MiB. */
#define HAUL_BLOCK_MAX 2097152

/** A block in the caller's hands. `data` may be used until the block is submitted, freed or closed. */
struct haul_block {
    haul_t handle;   /* names it; 0 if there is none */
    void *data;      /* its bytes */
    size_t length;   /* of them that are the block */
    size_t capacity; /* of them that may be written, before haul_block_submit() */
    uint64_t index;  /* which one it is */
};

/** Gives a buffer of at least `capacity` bytes to build a block in: one whose block has been acknowledged if there is one. */
int haul_block_alloc(haul_t blocks, size_t capacity, struct haul_block *block);

/** Sends the first `length` bytes of a block from haul_block_alloc() and gives its index. Waits as HAUL_OPT_SNDTIMEO says while as much is on its way as the
 * connection can use. After HAUL_EAGAIN and HAUL_ETIMEDOUT the block is still the caller's; else it is not, and its handle is set to 0. */
int64_t haul_block_submit(haul_t blocks, struct haul_block *block);

/** Sends a copy of `length` bytes as a block, and gives its index. */
int64_t haul_block_send(haul_t blocks, const void *data, size_t length);

/** Waits, as HAUL_OPT_RCVTIMEO says, for whichever block is complete next. 1: there is one; 0: the sender has ended the stream and all blocks were taken. */
int haul_block_recv(haul_t blocks, struct haul_block *block);

/** Gives a block's memory back, sent or not. A null pointer and a block without a handle are fine. */
int haul_block_free(struct haul_block *block);

/** @group haul_sendfile: files
 *
 * A part of a file, from a descriptor to a stream and from a stream to a descriptor. Over HAUL_BLOCKS it is fastest, and wants a stream of its own. The descriptor's
 * own position is neither used nor moved. Whole trees, verified and resumable, are for haul_copy(3).
 */

/** Hears of progress: bytes so far, and in all (-1: not known). Not 0 stops with HAUL_ECANCELLED. Called by the calling thread, at most 10 times a second and at the end. */
typedef int (*haul_progress_fn)(void *context, int64_t done, int64_t total);

/** Sends `size` bytes (-1: to the end of the file) of the file `fd` from `*offset` on, and gives their number; `*offset` is moved by what was sent.
 * `progress` may be null. On HAUL_BLOCKS the stream is ended, as by haul_shutdown(). */
int64_t haul_sendfile(haul_t stream, int fd, int64_t *offset, int64_t size, haul_progress_fn progress, void *context);

/** Receives `size` bytes (-1: to the end of the stream) into the file `fd` from `*offset` on, and gives their number; `*offset` is moved by them. On HAUL_BLOCKS the stream must be
 * one that haul_sendfile() sends, and `size` -1 or exactly what comes; after a failure any part of it may have been written. An ordered stream that ends early gives fewer bytes. */
int64_t haul_recvfile(haul_t stream, int fd, int64_t *offset, int64_t size, haul_progress_fn progress, void *context);

/** @group haul_setopt: options
 *
 * Nothing needs to be set for speed: window, rate and packet size are found by measurement. Set on an endpoint, an option holds for
 * connections made afterwards; timeouts are handed down to what is made from a handle.
 */

#define HAUL_OPT_SNDTIMEO 1      /* any handle: ms that sending, opening and flushing wait; -1 for ever (default), 0 not at all */
#define HAUL_OPT_RCVTIMEO 2      /* any handle: ms that receiving and accepting wait; -1 for ever (default), 0 not at all */
#define HAUL_OPT_CONNTIMEO 3     /* endpoint: ms that a handshake may take, 1 or more; 5000. Who listens: ms that a client may wait to be accepted; 10000 */
#define HAUL_OPT_MEMORY 4        /* endpoint, connection: bytes buffered in each direction, at most; 1 GiB */
#define HAUL_OPT_STREAM_WINDOW 5 /* endpoint: bytes that a peer may send ahead of the reader of a new ordered stream; 16 MiB */
#define HAUL_OPT_MAX_PACKET 6    /* endpoint: the largest packet to try, UDP payload, 1200 to 65507; 8972 */
#define HAUL_OPT_IDLE_TIMEOUT 7  /* endpoint: ms of silence after which a connection is dead, 1 or more; 90000 */
#define HAUL_OPT_KEEP_ALIVE 8    /* endpoint: ms after which something is sent to keep the way open; 0 never; 5000 */
#define HAUL_OPT_MAX_STREAMS 9   /* endpoint: streams of each kind that the peer may have open, 1 to 1048576; 16384 */
#define HAUL_OPT_RATE_LIMIT 10   /* endpoint, connection: bit/s that this side sends, at most; 0 no limit (default) */
#define HAUL_OPT_PATHS 11        /* endpoint: paths that a client opens, 1 to 8; 1 */
#define HAUL_OPT_PRIORITY 12     /* stream, blocks: who goes first among those with something to send, 0 to 255; 128. Cannot be read */
#define HAUL_OPT_CONTROLLER 20   /* endpoint, connection, by name (haul_setopt_name): "fair" (default), "modest", "cubic", "bbr", "fixed:10G", .. */

/** Sets an option that is a number. */
int haul_setopt(haul_t handle, int option, int64_t value);

/** Sets an option that is a name. */
int haul_setopt_name(haul_t handle, int option, const char *name);

/** Writes the value of an option to `*value`: of an endpoint, and the timeouts of every handle. */
int haul_getopt(haul_t handle, int option, int64_t *value);

/** @group haul_stats: measurements of a connection */

/** What is measured. `size` is set to sizeof(struct haul_statistics) by the caller, so that the structure can grow; what the library does not know
 * stays as it was. Of several paths, rates and counters are added up. */
struct haul_statistics {
    uint64_t size;
    uint64_t rtt_us;                /* smoothed round-trip time */
    uint64_t min_rtt_us;            /* the smallest of the last 10 s */
    uint64_t queue_delay_us;        /* towards the peer */
    uint64_t delivery_rate_bps;     /* at which what we send arrives, newest sample */
    uint64_t pacing_rate_bps;       /* at which we may send */
    uint64_t window_bytes;          /* congestion window */
    uint64_t in_flight_bytes;
    uint64_t packet_bytes;          /* packet size, UDP payload */
    uint64_t sent_pkts;
    uint64_t received_pkts;         /* each once */
    uint64_t duplicate_pkts;        /* received again */
    uint64_t lost_pkts;             /* taken for lost */
    uint64_t spurious_pkts;         /* of these, turned up after all */
    uint64_t ecn_marked_pkts;       /* marked with congestion by the network */
    uint64_t retransmitted_bytes;   /* of streams, sent again */
    uint64_t sent_bytes;            /* UDP payload */
    uint64_t acknowledged_bytes;    /* UDP payload */
    uint64_t received_bytes;        /* UDP payload, each packet once */
    uint64_t received_stream_bytes; /* of streams, each once */
    uint64_t loss_ppm;              /* of what we sent, in millionths */
    uint64_t buffered_bytes;        /* written and not yet acknowledged */
    uint64_t held_bytes;            /* received and not yet read */
    uint64_t streams;               /* open */
    uint64_t paths;                 /* that the peer answers on */
    uint64_t silence_us;            /* since the peer was heard */
};

/** Fills `statistics` for a connection. */
int haul_stats(haul_t connection, struct haul_statistics *statistics);

/** @group haul_fd: waiting for many things at once
 *
 * With timeouts of 0 nothing waits, and a program waits for everything in one place: either by haul_poll(), or by poll(2), select(2) or epoll(7) on the descriptors
 * that haul_fd() gives, beside its own.
 *
 * What is ready: HAUL_IN: an endpoint has a connection to accept, a connection a stream, a stream or a stream of blocks something to receive (or its end, or its
 * failure), a job is over. HAUL_OUT: a connection is made or has failed, a stream or a stream of blocks takes more. HAUL_HUP: a connection is over.
 */

#define HAUL_IN 1
#define HAUL_OUT 4
#define HAUL_HUP 16

/** Gives a descriptor that poll(2) finds readable when one of `events` may have happened at the handle: the same at each call, which sets the events
 * anew. When it is readable, call haul_ready(); do not read from it. It is closed with the handle. Linux only: elsewhere HAUL_EINVAL. */
int haul_fd(haul_t handle, int events);

/** Which of `events` are the case now, without waiting. If none of those of haul_fd() is, its descriptor falls quiet until one is. */
int haul_ready(haul_t handle, int events);

/** A handle to wait for, as struct pollfd. */
struct haul_pollfd {
    haul_t handle; /* 0: is passed over */
    int events;    /* wanted */
    int revents;   /* that are the case; a negative code if the handle is wrong */
};

/** Waits until one of `count` handles is ready, at most `timeout_ms` (-1: for ever), and gives how many are, or have a code; 0 if the time was over. */
int haul_poll(struct haul_pollfd *handles, size_t count, int timeout_ms);

/** @group haul_copy: copies of files and trees
 *
 * What `haul cp` does, in the background: through ssh to a host where haul is installed, or to a daemon whose key is known. Verified on arrival and resumable.
 */

/** How a copy is done. */
#define HAUL_COPY_RECURSIVE 1  /* directories with all that is in them */
#define HAUL_COPY_PRESERVE 2   /* modes, times, owners where allowed */
#define HAUL_COPY_SKIP_SAME 4  /* files of equal size and time are not copied */
#define HAUL_COPY_UPDATE 8     /* files that are newer at the destination are not copied */
#define HAUL_COPY_READ_BACK 16 /* what the destination's disk gives back is checked too */
#define HAUL_COPY_NO_VERIFY 32 /* nothing is hashed */
#define HAUL_COPY_NO_RESUME 64 /* what an earlier run left is removed */
#define HAUL_COPY_DELETE 128 /* what the source has not is removed in the copied directories, once all has arrived; with HAUL_COPY_RECURSIVE */
#define HAUL_COPY_CHECKSUM 256 /* files of equal content are not copied, whatever their times */
#define HAUL_COPY_SIZE_ONLY 512 /* files of equal size are not copied */
#define HAUL_COPY_COPY_LINKS 1024 /* what symbolic links below the sources lead to, not the links */
#define HAUL_COPY_DRY_RUN 2048 /* nothing is written; `would` hears what would be done */

/** What a dry run would do, as `would` is told. */
#define HAUL_WOULD_COPY 1
#define HAUL_WOULD_REPLACE 2
#define HAUL_WOULD_MAKE 3 /* a directory */
#define HAUL_WOULD_LINK 4
#define HAUL_WOULD_DELETE 5

/** What a copy has done so far. */
struct haul_copy_progress {
    uint64_t size;          /* of this structure: set by the library */
    uint64_t files_found;   /* so far */
    uint64_t bytes_found;   /* so far; all when `complete` */
    uint64_t files_arrived; /* under their final name */
    uint64_t bytes_arrived;
    uint64_t files_kept;    /* needed nothing */
    uint64_t bytes_kept;    /* were there already */
    uint64_t problems;
    uint64_t complete;      /* 1: no more will be found */
};

/** What is to be copied. `size` is sizeof(struct haul_copy_request); what is not used is 0 or null. Nothing in it is needed after haul_copy_start(). */
struct haul_copy_request {
    uint64_t size;
    const char *const *sources; /* as for haul cp: path, host:path, haul://host/root/path. All here, or all at one host */
    size_t source_count;
    const char *destination;
    uint64_t flags;             /* HAUL_COPY_* */
    uint64_t rate_limit_bps;
    const char *controller;
    const char *state;          /* directory of keys */
    const char *identity_file;  /* for ssh; null: as ssh is configured */
    /* Called by threads of the library, one at a time; at most 10 times a second and at the end. Not 0 cancels. */
    int (*progress)(void *context, const struct haul_copy_progress *progress);
    /* Called for each file that was not copied; the rest goes on. */
    void (*problem)(void *context, const char *message);
    void *context;
    const char *const *exclude; /* lines of a .gitignore: what they match is left out; the last that matches decides */
    size_t exclude_count;
    uint64_t max_deletes;       /* with HAUL_COPY_DELETE: if more names would go, none goes; 0: any number */
    uint64_t retries;           /* so often a copy that lost its connection, or found none, is tried again, after 1 s, 2 s, 4 s, .. up to 60 s */
    const char *transport;      /* what carries the data: "udp", "tcp", "ssh", "auto" (null) */
    const char *via;            /* leave by these interfaces or addresses, with commas between: "eth0,eth1:backup"; UDP alone */
    /* Called in a dry run for each name with what would be done (HAUL_WOULD_*); `bytes` of a file that would be copied. */
    void (*would)(void *context, int what, const char *path, uint64_t bytes);
    const char *relay;          /* "host[:port]" of a daemon (haul serve --relay) by which both sides of a copy through ssh meet where NATs let UDP in at neither, and which forwards what passes no other way; null: none */
};

/** What a copy did. `size` is set by the caller. */
struct haul_copy_result {
    uint64_t size;
    uint64_t files;
    uint64_t directories;
    uint64_t links;
    uint64_t bytes;         /* of content, that crossed the network */
    uint64_t resumed_bytes; /* that an earlier run had left */
    uint64_t skipped_files; /* that needed nothing */
    uint64_t problems;      /* files, links and directories that were not copied */
    uint64_t verified;      /* 0 not, 1 on arrival, 2 read back */
    uint64_t elapsed_us;
    uint64_t removed;       /* names that HAUL_COPY_DELETE removed, or in a dry run would */
};

/** Begins a copy and gives its job. */
haul_t haul_copy_start(const struct haul_copy_request *request);

/** Waits for the end of a job, as HAUL_OPT_RCVTIMEO says. 0: done, and `result` (may be null) has what; problems of single files are counted there. Else why the copy failed
 * as a whole; what arrived stays, and the same request goes on from there. */
int haul_copy_wait(haul_t job, struct haul_copy_result *result);

/** Stops a job; haul_copy_wait() then gives HAUL_ECANCELLED. */
int haul_cancel(haul_t job);

/** @group haul_fleet: one client and many servers
 *
 * What `haul fleet` does: files come from all servers that have parts or replicas of them, and go to as many as are asked for. The paper's Initiate and Start are haul_fleet_start(); SetDir, Status
 * and Stop have their names; MultiDownload and MultiUpload are several jobs at once. A job is one of haul_copy(3): haul_copy_wait(), haul_cancel(), haul_close(), and haul_poll() or haul_fd() for its end.
 */

/** Which servers, and how they are started. `size` is sizeof(struct haul_fleet_request); what is not used is 0 or null. Nothing in it is needed after haul_fleet_start(). */
struct haul_fleet_request {
    uint64_t size;
    const char *hosts;         /* as for haul fleet: host, me@host:/data, store[01-12], haul://host/root, with commas between; @FILE */
    const char *way;           /* "ssh-direct" (null), "ssh", "mpirun", "srun", "daemon" */
    uint64_t timeout_ms;       /* that the start may take; 30 s */
    const char *logs;          /* each job writes its log into a new directory in this one */
    const char *controller;
    const char *state;         /* directory of keys, for daemons */
    const char *ssh_config;
    const char *identity_file; /* for ssh */
    /* Called before haul_fleet_start() returns, for each server that did not come; before a later job it is tried again. */
    void (*absent)(void *context, const char *name, const char *why);
    void *context;
    const char *relay;         /* as for a copy */
};

/** What a server does in a job. */
struct haul_fleet_server {
    uint64_t size;  /* of this structure: set by the library */
    const char *name;
    uint64_t state; /* HAUL_FLEET_* */
    uint64_t files; /* complete */
    uint64_t bytes; /* that came from it, or went to it */
    uint64_t rate_bps;
    uint64_t rtt_us;
};

#define HAUL_FLEET_STARTING 0
#define HAUL_FLEET_LISTING 1
#define HAUL_FLEET_BUSY 2
#define HAUL_FLEET_IDLE 3
#define HAUL_FLEET_STALLED 4
#define HAUL_FLEET_DONE 5
#define HAUL_FLEET_DOWN 6

/** What is to be fetched or sent. `size` is sizeof(struct haul_fleet_job); what is not used is 0 or null. Nothing in it is needed after the call that it is given to. */
struct haul_fleet_job {
    uint64_t size;
    const char *const *sources; /* paths on the servers, to be fetched; or here, to be sent */
    size_t source_count;
    const char *destination;    /* here; or a directory on each server */
    uint64_t flags;             /* HAUL_COPY_*, up to HAUL_COPY_NO_RESUME */
    uint64_t replicas;          /* on so many servers each file is to be, if it is sent; 1 */
    uint64_t rate_limit_bps;    /* of all servers together */
    /* Called by threads of the library, one at a time; at most 10 times a second and at the end. Not 0 cancels. */
    int (*progress)(void *context, const struct haul_copy_progress *progress);
    /* Called for each file that was not copied; the rest goes on. */
    void (*problem)(void *context, const char *message);
    /* Called for each server, about five times a second. */
    void (*server)(void *context, const struct haul_fleet_server *server);
    void *context;
};

/** How a server is. */
struct haul_fleet_member {
    uint64_t size;       /* of this structure: set by the library */
    const char *name;
    const char *problem; /* why it is not there, or does not say; null: all is well */
    uint64_t rtt_us;
    uint64_t processors;
    uint64_t load_per_mille;
    uint64_t memory_total_bytes;
    uint64_t memory_available_bytes;
    uint64_t free_bytes; /* where its relative paths start */
};

/** Hears how a server is. */
typedef void (*haul_fleet_status_fn)(void *context, const struct haul_fleet_member *status);

/** Starts servers, waits until they are there, and gives the fleet. haul_close() lets them end when the last job is over. */
haul_t haul_fleet_start(const struct haul_fleet_request *request);

/** Joins the fleet that `haul fleet up --name NAME` of this user keeps. haul_close() leaves it up. */
haul_t haul_fleet_attach(const char *name);

/** From now on each job writes its log into a new directory in this one; null: none does. */
int haul_fleet_set_dir(haul_t fleet, const char *logs);

/** Begins to fetch, and gives the job. */
haul_t haul_fleet_download(haul_t fleet, const struct haul_fleet_job *job);

/** Begins to send, and gives the job. */
haul_t haul_fleet_upload(haul_t fleet, const struct haul_fleet_job *job);

/** Asks all servers how they are, has `tell` (may be null) hear of each before it returns, and gives the number of those that are there. */
int haul_fleet_status(haul_t fleet, haul_fleet_status_fn tell, void *context);

/** Ends the servers that were started, also where another process keeps them. Jobs that are under way find them gone. */
int haul_fleet_stop(haul_t fleet);

/** @group haul_perf: a path measured, from memory to memory
 *
 * What `haul perf` does, with a server of `haul perf -s` or a daemon at the other end. The connection must have agreed on HAUL_PERF_PROTOCOL: see haul_add_protocol(3).
 */

#define HAUL_PERF_PROTOCOL "haul-perf/1"
#define HAUL_PERF_UP 0   /* the client sends */
#define HAUL_PERF_DOWN 1 /* the server sends */
#define HAUL_PERF_BOTH 2 /* both at once */

/** What both ends counted in an interval of one direction. */
struct haul_perf_interval {
    uint64_t size;           /* of this structure: set by the library */
    uint64_t down;           /* 0: to the server, 1: from it */
    uint64_t start_us;       /* since the start */
    uint64_t end_us;
    uint64_t sent_bytes;
    uint64_t received_bytes; /* this is the result */
};

/** What to measure. `size` is sizeof(struct haul_perf_request); what is 0 is as `haul perf` has it. */
struct haul_perf_request {
    uint64_t size;
    uint64_t ways;        /* HAUL_PERF_UP, HAUL_PERF_DOWN, HAUL_PERF_BOTH */
    uint64_t streams;     /* each way, 1 to 128; 1 */
    uint64_t block_bytes; /* handed to the transport at once; 1 MiB */
    uint64_t bytes;       /* until so many have arrived; or */
    uint64_t time_ms;     /* for so long; 10 s */
    uint64_t interval_ms; /* between two reports, 10 or more; 1 s */
    /* Called by a thread of the library for each interval. Not 0 stops. */
    int (*interval)(void *context, const struct haul_perf_interval *interval);
    void *context;
};

/** What receivers counted. `size` is set by the caller. */
struct haul_perf_result {
    uint64_t size;
    uint64_t up_bytes;
    uint64_t up_us;   /* in this time */
    uint64_t down_bytes;
    uint64_t down_us;
};

/** Measures, and waits for the end. 0: `result` (may be null) has what; HAUL_ECANCELLED: it was stopped, and `result` has what came until then. The connection is over afterwards. */
int haul_perf(haul_t connection, const struct haul_perf_request *request, struct haul_perf_result *result);

#ifdef __cplusplus
}
#endif

#endif
