/*
 * congestion.h: a client limits its own requests to a server: window, pace, congestion rules. Part of libascar.
 *
 * A stream is one client's requests to one server. It says when a request may leave, and learns from the replies:
 *
 *     ascar_stream_t *stream;
 *     ascar_stream_create(&stream);
 *     ascar_stream_set_rules(stream, text_of_a_rule_file, NULL);
 *     for each request:
 *         ascar_stream_ask(stream, now_us(), bytes, &at_us);        until at_us <= now_us()
 *         ascar_stream_sent(stream, now_us(), &sending, &request);  and send it
 *         ascar_stream_replied(stream, &request, now_us());         when its reply has come
 *     ascar_stream_free(stream);
 *
 * Rules for every function:
 * - It returns ASCAR_OK or one of the errors of ascar_status_t; ascar_last_error() then says in words what was wrong,
 *   and what is allowed. On an error nothing that it was given to write to is written, and the stream stays as it was.
 * - Pointers must not be NULL unless it says so. A pointer that is not NULL must be valid, for as many elements as the
 *   count beside it says.
 * - Times are microseconds of a clock of the caller's that never goes back (CLOCK_MONOTONIC), at most ASCAR_NOW_US_MAX.
 *   A stream refuses a time that is earlier than one that it was told before.
 * - The library does no I/O, reads no clock, starts no threads, and has no global state. ascar_stream_ask, _sent,
 *   _replied, _timed_out, _cancelled, _give_back and _state allocate nothing, but for the message of an error.
 * - A stream may be used from any thread, also from several at once: a lock inside it keeps it whole. Threads that share
 *   a stream read the clock and make their calls under one lock of their own, for times must not go back, and
 *   ascar_stream_ask and ascar_stream_sent of one request belong together. Streams do not affect each other. No other
 *   thread may use a stream while or after it is freed.
 * - No structure holds pointers into the library: results may be copied and kept.
 *
 * Source of the method: Yan Li, Automatic Performance Tuning of Storage Systems, chapter 3.
 */
#ifndef ASCAR_CONGESTION_H
#define ASCAR_CONGESTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions and errors ---------------------------------------------------------------------------------- */

/** Version of this header. Before 1.0, versions with another minor number are incompatible. */
#define ASCAR_VERSION_MAJOR 0
#define ASCAR_VERSION_MINOR 1
#define ASCAR_VERSION_PATCH 0
#define ASCAR_VERSION "0.1.0"

/** What functions return; the numbers are those of pilot.h. */
typedef enum ascar_status {
    ASCAR_OK = 0,
    ASCAR_ERROR_ARGUMENT = 1, /**< An argument cannot be used: NULL, out of its range, a time that went back. */
    ASCAR_ERROR_STATE = 3,    /**< Not now: a request that has no place, or is not in flight; no rules in force. */
    ASCAR_ERROR_INTERNAL = 6  /**< A defect of the library, caught; free the stream. */
} ascar_status_t;

/** Version of the library that is running, as "0.1.0". */
const char *ascar_version(void);

/**
 * What was wrong when a function of the library last returned an error in this thread; "" where none has. Valid until
 * the next error in this thread. The same as pilot_last_error().
 */
const char *ascar_last_error(void);

/* --- a stream and what controls it ------------------------------------------------------------------------ */

/** A stream. Opaque. */
typedef struct ascar_stream ascar_stream_t;

/** The latest time that a stream can be told. */
#define ASCAR_NOW_US_MAX (UINT64_MAX / 2)

/** A stream with a window of 8 requests and no pace. Free with ascar_stream_free. */
int ascar_stream_create(ascar_stream_t **stream);

/** Frees a stream; NULL is allowed. */
int ascar_stream_free(ascar_stream_t *stream);

/*
 * The three functions below may be called at any time. What is in flight stays so and is counted on; requests that leave
 * afterwards are controlled anew, and what was observed before is forgotten.
 */

/**
 * A fixed window and a fixed pace.
 *
 * @param window  requests in flight, 1 to 256; 2.5 lets two be in flight
 * @param pace_us the least time between two requests; 0: none
 */
int ascar_stream_set_fixed(ascar_stream_t *stream, double window, uint32_t pace_us);

/** What ascar_stream_set_rules may be told; start from ASCAR_RULE_OPTIONS_DEFAULTS. */
typedef struct ascar_rule_options_t {
    double window; /**< The window to begin with, 1 to 256; 0: as it is now. */
    int extended;  /**< 1: the extended controller; 0: only where rules bound more than the thesis' indicators. */
    uint64_t seed; /**< Streams of different seeds probe at different times; of the extended controller. */
} ascar_rule_options_t;

#define ASCAR_RULE_OPTIONS_DEFAULTS { 0, 0, 0 }

/**
 * Congestion rules, which set window and pace at each reply.
 *
 * @param rules   the text of a rule file, as `ascar sharp search` writes it: 1 to 262144 bytes of UTF-8
 * @param options may be NULL: the defaults
 */
int ascar_stream_set_rules(ascar_stream_t *stream, const char *rules, const ascar_rule_options_t *options);

/** What ascar_stream_set_rival may be told; start from ASCAR_RIVAL_DEFAULTS, the figures of the sources. */
typedef struct ascar_rival_settings_t {
    uint32_t latency_us_max;    /**< Process times above it are congestion to aimd, cubic and bbr3; 1 or more. */
    double aimd_decrease;       /**< aimd: factor of the window at congestion, 0.01 to 0.99. */
    double cubic_decrease;      /**< cubic: the same. */
    double cubic_growth;        /**< cubic: growth in requests a cubic second, 0.000001 to 1000000. */
    double vegas_alpha;         /**< vegas: requests queued below which it grows, 0 to 10000. */
    double vegas_beta;          /**< vegas: requests queued above which it shrinks, vegas_alpha to 10000. */
    double copa_delta;          /**< copa: it aims at a queue of 1 / delta requests, 0.0001 to 10000. */
    double gradient2_queue;     /**< gradient2: requests that it lets queue, 0 to 10000. */
    double gradient2_smoothing; /**< gradient2: weight of a new limit, 0.001 to 1. */
    double bbr_window_gain;     /**< bbr, bbr3: the window over what the path holds, 0.1 to 100. */
    double bbr_probe_gain;      /**< bbr, bbr3: factor of the pace while probing for more, 1 to 1.99. */
} ascar_rival_settings_t;

#define ASCAR_RIVAL_DEFAULTS { 200000, 0.5, 0.7, 0.4, 2, 4, 0.5, 4, 0.2, 2, 1.25 }

/**
 * A published controller that needs no rules. It begins with its own window.
 *
 * @param name     fixed, aimd, cubic, bbr, bbr3, vegas, gradient2, envoy, copa or iopathtune
 * @param seed     streams of different seeds probe at different times
 * @param settings may be NULL: the defaults
 */
int ascar_stream_set_rival(ascar_stream_t *stream, const char *name, uint64_t seed,
                           const ascar_rival_settings_t *settings);

/* --- requests --------------------------------------------------------------------------------------------- */

/** What ascar_stream_ask says while the window is full: ask again when a request is over. One is in flight then. */
#define ASCAR_AFTER_REPLY UINT64_MAX

/**
 * Asks when the next request may leave.
 *
 * It takes its place in window and pace as soon as the window has room, and keeps it however often this is asked again.
 * At most one request has a place without having left. Asking for another size passes the place on, if the window has
 * room for that size.
 *
 * @param bytes what it reads or writes; 0 of a flush
 * @param at_us at most now_us: now; ASCAR_AFTER_REPLY: when a request is over; else: at that time
 */
int ascar_stream_ask(ascar_stream_t *stream, uint64_t now_us, uint32_t bytes, uint64_t *at_us);

/**
 * The request that has its place is not sent: gives the place back, to the one that asks next. Nothing happens where
 * none has one.
 */
int ascar_stream_give_back(ascar_stream_t *stream);

/** What leaves. */
typedef struct ascar_sending_t {
    uint64_t offset_bytes; /**< Where it begins; tells rules whether requests are sequential. */
    uint32_t bytes;        /**< As asked for. */
    uint32_t file;         /**< Which file, by a number of the caller's; of a device, 0. */
    int writes;            /**< 0: it reads. */
} ascar_sending_t;

/** A request that has left. The library fills it in; keep it until the request is over, and change nothing. */
typedef struct ascar_request_t {
    uint64_t sent_us;
    uint64_t stream; /**< Which stream it belongs to; 0 once it is over. */
    uint32_t bytes;
    uint32_t traits;
} ascar_request_t;

/** The request that may leave now does, at now_us; call it just before the request is sent. */
int ascar_stream_sent(ascar_stream_t *stream, uint64_t now_us, const ascar_sending_t *sending,
                      ascar_request_t *request);

/** Its reply came, of success or of an error. */
int ascar_stream_replied(ascar_stream_t *stream, ascar_request_t *request, uint64_t now_us);

/** Its reply did not come in time, and is waited for no more: one that comes later is not told. */
int ascar_stream_timed_out(ascar_stream_t *stream, ascar_request_t *request, uint64_t now_us);

/** It could not be sent after all, or its connection ended: it is over, and says nothing of the server. */
int ascar_stream_cancelled(ascar_stream_t *stream, ascar_request_t *request);

/* --- what it shows ---------------------------------------------------------------------------------------- */

/** A stream at present. */
typedef struct ascar_stream_state_t {
    double window;               /**< Requests that may be in flight. */
    uint32_t pace_us;            /**< The least time between two requests (tau). */
    uint32_t requests_in_flight; /**< With the one that has its place and has not left. */
    uint64_t bytes_in_flight;
    uint64_t replies;            /**< Requests answered since the stream was made. */
    uint64_t timeouts;           /**< Requests given up. */
    uint32_t rules;              /**< Rules in force; 0: others decide. */
    uint32_t ack_ewma_us;        /**< Moving average of gaps between replies. */
    uint32_t send_ewma_us;       /**< The same between the sending times of the requests answered. */
    uint32_t slow_ack_ewma_us;   /**< As ack_ewma_us, slower. This and all below but pt_ratio: 0 unless extended. */
    uint32_t timeouts_per_1000;  /**< Requests, as the four below, of moving averages. */
    uint32_t writes_per_1000;
    uint32_t sequential_per_1000; /**< Requests that went on where another had ended. */
    uint32_t request_kib;        /**< Mean size. */
    double pt_ratio;             /**< The last process time over the shortest; 0 before the first reply. */
} ascar_stream_state_t;

/** Reads a stream out. */
int ascar_stream_state(ascar_stream_t *stream, ascar_stream_state_t *state);

/**
 * How often each rule was used since the rules were set; ASCAR_ERROR_STATE where none are in force.
 *
 * @param uses  room for `capacity` counts, in the order of the rules; may be NULL where that is 0
 * @param found how many there are, whatever the room; as many as fit are written
 */
int ascar_stream_rule_uses(ascar_stream_t *stream, uint64_t *uses, size_t capacity, size_t *found);

/**
 * The rules in force as the text of a rule file, with their use and the mean indicators where they were used: what
 * `ascar sharp explain` and `ascar sharp split` read. ASCAR_ERROR_STATE where no rules are in force.
 *
 * @param text  room for `capacity` bytes; may be NULL where that is 0
 * @param found bytes of the text with the NUL at its end, whatever the room. What does not fit is cut off, before a
 *              NUL, and a number that grows may make the next text longer.
 */
int ascar_stream_rules(ascar_stream_t *stream, char *text, size_t capacity, size_t *found);

#ifdef __cplusplus
}
#endif

#endif /* ASCAR_CONGESTION_H */
