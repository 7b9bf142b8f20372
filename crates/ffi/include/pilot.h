/*
 * pilot.h: benchmark numbers that can be trusted, in the shortest time. The C interface of libascar.
 *
 * Two ways to use it. A session runs a workload of yours, round by round, until its performance indicators are
 * known well enough:
 *
 *     pilot_session_t *session;
 *     pilot_create(PILOT_NORMAL, &session);
 *     pilot_set_work_amount(session, 1, 1e9, 1);
 *     pilot_set_workload(session, workload, &context);
 *     pilot_run(session);
 *     pilot_speed(session, &speed);
 *     pilot_free(session);
 *
 * And the analysis functions take readings that are there already: pilot_analyze, pilot_welch and so on.
 *
 * Rules for every function:
 * - It returns PILOT_OK or one of the errors of pilot_status_t; pilot_last_error() then says in words what was
 *   wrong, and what is allowed. On an error nothing that it was given to write to is written, and a session stays
 *   as it was; pilot_run alone keeps what it has measured.
 * - Pointers must not be NULL unless it says so, and readings must be finite. A pointer that is not NULL must be
 *   valid, for as many elements as the count beside it says.
 * - Where no honest number exists, it is NAN: both ends of an interval, with the reason beside them.
 * - A session may be used from any thread, also from several at once. While pilot_run is running, every other
 *   function of the same session returns PILOT_ERROR_BUSY, but for pilot_stop. Sessions do not affect each other,
 *   and there is no global state. No other thread may use a session while or after it is freed.
 * - No structure holds pointers into the library: results may be copied and kept.
 *
 * Source of the method: Yan Li, Automatic Performance Tuning of Storage Systems, chapter 4.
 */
#ifndef PILOT_H
#define PILOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- versions and errors ---------------------------------------------------------------------------------- */

/** Version of this header. Before 1.0, versions with another minor number are incompatible. */
#define PILOT_VERSION_MAJOR 0
#define PILOT_VERSION_MINOR 1
#define PILOT_VERSION_PATCH 0
#define PILOT_VERSION "0.1.0"

/** What functions return. */
typedef enum pilot_status {
    PILOT_OK = 0,
    PILOT_ERROR_ARGUMENT = 1, /**< An argument cannot be used: NULL, NAN, out of its range. */
    PILOT_ERROR_BUSY = 2,     /**< The session is running. */
    PILOT_ERROR_STATE = 3,    /**< Not yet, or not in this session: it has not run, or work is not adjustable. */
    PILOT_ERROR_WORKLOAD = 4, /**< The workload failed; what was measured before is kept. */
    PILOT_ERROR_MEMORY = 5,   /**< There is not enough memory for the readings. */
    PILOT_ERROR_INTERNAL = 6  /**< A defect of the library, caught; free the session. */
} pilot_status_t;

/** Version of the library that is running, as "0.1.0". */
const char *pilot_version(void);

/**
 * What was wrong when a function last returned an error in this thread; "" where none has. Valid until the next
 * error in this thread.
 */
const char *pilot_last_error(void);

/* --- a session and what it is to reach --------------------------------------------------------------------- */

/** A session. Opaque. */
typedef struct pilot_session pilot_session_t;

/** A round under way. Opaque; valid only until the workload returns. */
typedef struct pilot_round pilot_round_t;

/** How well numbers are to be known: total width of the 95% interval over the mean, and the least readings. */
typedef enum pilot_preset {
    PILOT_QUICK = 0,  /**< 20%, 12 readings. */
    PILOT_NORMAL = 1, /**< 10%, 50 readings, 3 rounds. */
    PILOT_STRICT = 2  /**< 10%, 200 readings, 5 rounds. */
} pilot_preset_t;

/** How readings are averaged. */
typedef enum pilot_kind {
    PILOT_ORDINARY = 0, /**< Arithmetic mean. */
    PILOT_RATIO = 1,    /**< Numbers above 0 such as speeds over equal work: harmonic mean. */
    PILOT_BINARY = 2    /**< 0 and 1: a proportion. */
} pilot_kind_t;

/** What a workload returns; anything else says that it failed, and is passed on in pilot_last_error(). */
enum {
    PILOT_ROUND_DONE = 0, /**< The round counts. */
    PILOT_ROUND_STOP = 1  /**< The round does not count, and the session ends with what it has. */
};

/**
 * One round of the benchmark.
 *
 * Does `work_amount` units of work (0 where the work cannot be adjusted) and says what it read with
 * pilot_round_reading and pilot_round_unit_readings. The library takes the time. No longjmp may leave it, and no
 * exception: one that does ends the program.
 *
 * @param user what was given to pilot_set_workload
 */
typedef int (*pilot_workload_t)(void *user, double work_amount, pilot_round_t *round);

/** A session's preset; everything else has its default. Free with pilot_free. */
int pilot_create(pilot_preset_t preset, pilot_session_t **session);

/** Frees a session; NULL is allowed. One that is running is not freed (PILOT_ERROR_BUSY). */
int pilot_free(pilot_session_t *session);

/** Total width of the interval over the mean, e.g. 0.1. */
int pilot_set_interval_width(pilot_session_t *session, double relative_width);

/** Confidence of the intervals, above 0 and below 1; 0.95 by default. */
int pilot_set_confidence(pilot_session_t *session, double confidence);

/** The fewest readings in the stable phase. */
int pilot_set_readings_min(pilot_session_t *session, size_t readings);

/** The fewest rounds, and the most (10,000 by default). */
int pilot_set_rounds(pilot_session_t *session, size_t least, size_t most);

/** Seconds after which the session ends, whatever it knows; 3600 by default. A round is not cut off. */
int pilot_set_session_limit(pilot_session_t *session, double seconds);

/**
 * Makes the work adjustable: rounds do between `least` (above 0) and `most` units of it, whole numbers where
 * `whole` is not 0. Without unit readings the session's goal is then the speed (the WPS method).
 */
int pilot_set_work_amount(pilot_session_t *session, double least, double most, int whole);

/** Rounds shorter than this (1 s by default) are set aside, and the next does twice the work. */
int pilot_set_short_round(pilot_session_t *session, double seconds);

/** No round is planned longer than this; 180 s by default. */
int pilot_set_longest_round(pilot_session_t *session, double seconds);

/** Seconds after which a first result is wanted, 60 by default: rounds grow so that about 50 fit (eq. 4.5). */
int pilot_set_first_result(pilot_session_t *session, double seconds);

/**
 * Adds a performance indicator.
 *
 * @param name       its own, with its unit last, at most 255 bytes of UTF-8
 * @param kind       how its readings are averaged
 * @param must_reach 0: it is reported, and never keeps the session going
 * @param index      by which the other functions know it: 0, 1, ... in the order of adding; may be NULL
 */
int pilot_add_indicator(pilot_session_t *session, const char *name, pilot_kind_t kind, int must_reach,
                        size_t *index);

/**
 * Gives an indicator a goal of its own, instead of the session's; it must then be reached.
 *
 * @param indicator      as pilot_add_indicator gave it
 * @param relative_width total width of its interval over its mean, e.g. 0.03
 * @param confidence     of its interval, above 0 and below 1
 * @param readings       the fewest readings in its stable phase
 */
int pilot_set_goal(pilot_session_t *session, size_t indicator, double relative_width, double confidence,
                   size_t readings);

/**
 * Gives the speed a goal of its own; it must then be reached also where unit readings decide. The work must be
 * adjustable when the session runs.
 */
int pilot_set_speed_goal(pilot_session_t *session, double relative_width, double confidence);

/**
 * Measures by the published rule, with the released Pilot's figures of a preset: readings merge into subsessions until
 * the magnitude of their autocorrelation is at most 0.8 (quick), 0.2 (normal) or 0.1 (strict), the first interval that
 * is narrow enough on 30, 50 or 200 subsessions ends the session, and rounds shorter than 3, 10 or 20 s do not count.
 * Its intervals cover less than they promise. Replaces the session's goal.
 */
int pilot_set_published(pilot_session_t *session, pilot_preset_t preset);

/** Sets what a round is; `user` is handed to it and may be NULL. */
int pilot_set_workload(pilot_session_t *session, pilot_workload_t workload, void *user);

/* --- inside the workload ------------------------------------------------------------------------------------ */

/** One reading of an indicator for the whole round; given twice, the last counts. */
int pilot_round_reading(pilot_round_t *round, size_t indicator, double value);

/**
 * Unit readings of an indicator, one a work unit, in the order they were taken; may be called again for more.
 * They decide where there are any. `values` may be NULL where `count` is 0.
 */
int pilot_round_unit_readings(pilot_round_t *round, size_t indicator, const double *values, size_t count);

/**
 * Says what the units of an indicator's unit readings were, where they differ: in their kind, in their work, or in
 * both. Told for all unit readings of the round, in their order; may be called again for more.
 *
 * The mean is that of each kind, weighted by the kind's share of the work; of PILOT_RATIO, all work over all time.
 * Not for PILOT_BINARY.
 *
 * @param kinds a number for each unit, equal where units are alike; NULL: all are of one kind
 * @param work  the work of each unit, above 0; NULL: each does the same
 */
int pilot_round_units(pilot_round_t *round, size_t indicator, const uint32_t *kinds, const double *work,
                      size_t count);

/** The round took so many seconds, above 0, instead of the time the workload took (which has set-up in it). */
int pilot_round_seconds(pilot_round_t *round, double seconds);

/** Seconds left to the session when the round began. */
int pilot_round_seconds_left(pilot_round_t *round, double *seconds);

/* --- running it --------------------------------------------------------------------------------------------- */

/** Why a session ended. */
typedef enum pilot_ended {
    PILOT_RUNNING = 0,       /**< It goes on. */
    PILOT_ENDED_REACHED = 1, /**< Every goal is reached. */
    PILOT_ENDED_TIME = 2,    /**< The limit of time was reached. */
    PILOT_ENDED_ROUNDS = 3,  /**< The limit of rounds was reached. */
    PILOT_ENDED_STOPPED = 4, /**< pilot_stop, or PILOT_ROUND_STOP. */
    PILOT_ENDED_FAILED = 5   /**< The workload failed. */
} pilot_ended_t;

/** What a session has come to. */
typedef struct pilot_summary_t {
    int ended;         /**< A pilot_ended_t. */
    int reached;       /**< 1: every goal is reached. */
    int speed_decides; /**< 1: the goal is the speed's, because there are no unit readings. */
    size_t rounds;      /**< Of them all. */
    size_t rounds_used; /**< Rounds that the results rest on; short ones were set aside. */
    double seconds;     /**< How long it has taken. */
    double seconds_left; /**< What it may still take, as far as the intervals tell; NAN while they do not. */
    char why[96];       /**< Why it ended, one line; "" while it goes on. */
} pilot_summary_t;

/** Told after each round. As with a workload, no exception and no longjmp may leave it. */
typedef void (*pilot_progress_t)(void *user, const pilot_summary_t *summary);

/** Sets who is told after each round; NULL: nobody. */
int pilot_set_progress(pilot_session_t *session, pilot_progress_t progress, void *user);

/**
 * Runs rounds until every goal is reached or a limit is; PILOT_OK in both cases (pilot_summary tells which).
 * Run again, a session begins anew and forgets its results. Where a call of the workload has failed (a reading
 * that is NAN, or not of its indicator's kind), the session ends with PILOT_ERROR_WORKLOAD.
 */
int pilot_run(pilot_session_t *session);

/**
 * Asks a session to end after the round under way, with what it has; before pilot_run: before its first round.
 * Safe in other threads and in signal handlers. Leaves pilot_last_error() alone.
 */
int pilot_stop(pilot_session_t *session);

/* --- results ------------------------------------------------------------------------------------------------ */

/** A mean with what is known about it. */
typedef struct pilot_measurement_t {
    double mean;                /**< Over the stable phase; NAN without readings. */
    double ci_low;              /**< Lower end of its interval; NAN where no honest one exists. */
    double ci_high;             /**< Upper end, or NAN. */
    double confidence;          /**< Of the interval. */
    double autocorrelation;     /**< Lag 1, of the stable phase. */
    double independent_samples; /**< Independent samples that the stable phase is worth. */
    size_t n;                   /**< Readings in the stable phase. */
    size_t subsession_size;     /**< Readings merged until they are nearly uncorrelated; n where none are. */
    size_t subsessions;         /**< n over that size. */
    size_t stable_start;        /**< First reading of the stable phase. */
    size_t stable_end;          /**< One past its last reading. */
    size_t change_points;       /**< How many changes of level there are. */
    char method[64];            /**< How the interval was computed. */
    char reason[192];           /**< Why there is no interval; "" where there is one. */
} pilot_measurement_t;

/** What readings are. */
typedef enum pilot_basis {
    PILOT_READINGS = 0,      /**< One a round. */
    PILOT_UNIT_READINGS = 1, /**< Many a round; the stable phases of several rounds follow each other. */
    PILOT_ROUND_MEANS = 2    /**< Means of rounds: unit readings agree inside rounds but not between them. */
} pilot_basis_t;

/** What the rounds say about an indicator. */
typedef struct pilot_finding_t {
    pilot_measurement_t measurement;
    int basis;              /**< A pilot_basis_t. */
    int reached;            /**< 1: its goal is reached, or it has none. */
    size_t readings;        /**< How many were taken. */
    size_t removed;         /**< Of them left out as warm-up and cool-down. */
    size_t rounds_unstable; /**< Rounds without a stable phase, left out whole. */
} pilot_finding_t;

/** The speed of the stable phase (WPS; eq. 4.1-4.4): a round takes overhead_s + work / work_per_s. */
typedef struct pilot_speed_t {
    double work_per_s;
    double ci_low;          /**< Lower end of its interval; NAN where no honest one exists. */
    double ci_high;         /**< Upper end, or NAN. */
    double confidence;
    double overhead_s;      /**< alpha: what set-up, warm-up and cool-down add to a round. */
    double autocorrelation; /**< Lag 1, of what the line leaves unexplained. */
    size_t rounds;          /**< Rounds that the line rests on; those dominated by alpha are left out. */
    char reason[192];       /**< Why there is no interval; "" where there is one. */
} pilot_speed_t;

/** One round as it was. */
typedef struct pilot_done_t {
    double work_amount; /**< 0 where the work cannot be adjusted. */
    double seconds;
    int used;           /**< 0: it was short, and set aside. */
} pilot_done_t;

/** How the last run ended. */
int pilot_summary(pilot_session_t *session, pilot_summary_t *summary);

/** What the last run found about an indicator. */
int pilot_finding(pilot_session_t *session, size_t indicator, pilot_finding_t *finding);

/**
 * The changes of level behind a finding: indexes of the first reading of each new one.
 *
 * @param points   room for `capacity` of them; may be NULL where that is 0
 * @param found    how many there are, whatever the room; as many as fit are written
 */
int pilot_finding_change_points(pilot_session_t *session, size_t indicator, size_t *points, size_t capacity,
                                size_t *found);

/**
 * What the last run found about one kind of an indicator's units.
 *
 * @param share       its share of all work
 * @param measurement the mean of its stable units
 */
int pilot_finding_kind(pilot_session_t *session, size_t indicator, uint32_t kind, double *share,
                       pilot_measurement_t *measurement);

/** The speed that the last run found; PILOT_ERROR_STATE where the work cannot be adjusted. */
int pilot_speed(pilot_session_t *session, pilot_speed_t *speed);

/** A round of the last run, from 0. */
int pilot_done(pilot_session_t *session, size_t round, pilot_done_t *done);

/* --- analysis of readings that are there -------------------------------------------------------------------- */

/** How an interval is computed. */
typedef enum pilot_method {
    PILOT_CORRECTED = 0, /**< The variance corrected for correlation. */
    PILOT_FAITHFUL = 1   /**< The published rule: EDM and subsessions. Covers less than it promises. */
} pilot_method_t;

/** What pilot_analyze may be told; start from PILOT_ANALYSIS_DEFAULTS. */
typedef struct pilot_analysis_options_t {
    double confidence;
    double autocorrelation_limit; /**< Of subsession means, in absolute value; above 0 and below 1. */
    size_t min_segment;           /**< The shortest phase that is told apart, 2 or more. */
    int method;                   /**< A pilot_method_t. */
} pilot_analysis_options_t;

#define PILOT_ANALYSIS_DEFAULTS { 0.95, 0.1, 30, PILOT_CORRECTED }

/** The stable phase of readings, its mean and interval. `options` may be NULL: the defaults. */
int pilot_analyze(const double *values, size_t count, const pilot_analysis_options_t *options,
                  pilot_measurement_t *measurement);

/**
 * Where the level of readings changes: robust to spikes, honest about correlated noise.
 *
 * @param min_segment the shortest phase that is told apart, 2 or more; 30 is usual
 * @param points      room for `capacity` indexes; may be NULL where that is 0
 * @param found       how many there are, whatever the room; as many as fit are written
 */
int pilot_change_points(const double *values, size_t count, size_t min_segment, size_t *points,
                        size_t capacity, size_t *found);

/** What pilot_edm_change_points may be told; start from PILOT_EDM_DEFAULTS. */
typedef struct pilot_edm_options_t {
    size_t min_segment; /**< 2 or more. */
    double percent;     /**< What one more change must add to the statistic, 0 or more. */
    int degree;         /**< How that price grows with changes: 0, 1 or 2. */
} pilot_edm_options_t;

#define PILOT_EDM_DEFAULTS { 30, 0.25, 1 }

/** E-Divisive with Medians as published. `options` may be NULL: the defaults. */
int pilot_edm_change_points(const double *values, size_t count, const pilot_edm_options_t *options,
                            size_t *points, size_t capacity, size_t *found);

/** Lag-k autocorrelation coefficient; 0 for a series without variation or not longer than the lag. */
int pilot_autocorrelation(const double *values, size_t count, size_t lag, double *coefficient);

/** How many independent samples readings are worth; at least 2 readings. */
int pilot_effective_sample_size(const double *values, size_t count, double *size);

/** The published rule: the fewest readings to merge for |autocorrelation| <= limit; 0 where no number does. */
int pilot_subsession_size(const double *values, size_t count, double limit, size_t *size);

/** An estimate between two limits; NAN where there is none. */
typedef struct pilot_interval_t {
    double estimate;
    double low;
    double high;
} pilot_interval_t;

/** Student's t interval of the mean of independent values, at least 2. */
int pilot_mean_interval(const double *values, size_t count, double confidence, pilot_interval_t *interval);

/** The harmonic mean of rates over equal work, all above 0; `high` may be INFINITY. */
int pilot_harmonic_mean_interval(const double *values, size_t count, double confidence,
                                 pilot_interval_t *interval);

/** How the interval of a proportion is computed. */
typedef enum pilot_proportion {
    PILOT_WILSON = 0, /**< Wilson's score interval. */
    PILOT_EXACT = 1   /**< Clopper and Pearson's: never covers less than stated. */
} pilot_proportion_t;

/** The proportion of successes among trials. */
int pilot_proportion_interval(uint64_t successes, uint64_t trials, double confidence, pilot_proportion_t method,
                              pilot_interval_t *interval);

/** A percentile (`quantile` 0.99: the 99th) of independent values; all NAN where the sample is too small. */
int pilot_percentile_interval(const double *values, size_t count, double quantile, double confidence,
                              pilot_interval_t *interval);

/** Two means compared. */
typedef struct pilot_welch_t {
    double difference;    /**< mean(a) - mean(b). */
    double ci_low;
    double ci_high;
    double ratio;         /**< mean(a) / mean(b). */
    double ratio_ci_low;  /**< NAN where mean(b) is not told from 0. */
    double ratio_ci_high;
    double p_value;       /**< Two-sided, of equal means. */
    double t;
    double dof;           /**< Welch and Satterthwaite's. */
} pilot_welch_t;

/** Welch's test of independent values, at least 2 a side; for one look (else pilot_sequential_compare). */
int pilot_welch(const double *a, size_t a_count, const double *b, size_t b_count, double confidence,
                pilot_welch_t *welch);

/** The fewest samples a side that separate two means with error rates `alpha` and 1 - `power`. */
int pilot_welch_sample_size(double mean_a, double sd_a, double mean_b, double sd_b, double alpha, double power,
                            uint64_t *samples);

/** What a sequential comparison says. */
typedef enum pilot_verdict {
    PILOT_UNDECIDED = 0,
    PILOT_LESS = 1,       /**< mean(a) is below mean(b). */
    PILOT_GREATER = 2,    /**< mean(a) is above mean(b). */
    PILOT_EQUIVALENT = 3  /**< They differ by less than the margin. */
} pilot_verdict_t;

/** The state of a comparison at one look; limits and p-value hold at all looks together. */
typedef struct pilot_sequential_t {
    double difference;
    double ci_low;        /**< -INFINITY while nothing can be said. */
    double ci_high;       /**< INFINITY while nothing can be said. */
    double ratio;
    double ratio_ci_low;  /**< NAN while unbounded. */
    double ratio_ci_high;
    double p_value;
    double independent_samples; /**< A side. */
    int verdict;          /**< A pilot_verdict_t. */
} pilot_sequential_t;

/**
 * Two series of readings compared, after every reading if you like: the error rate `alpha` holds over all looks
 * together. At least 6 readings a side.
 *
 * @param margin relative difference that does not matter, above 0 and below 1; 0: never call them equal
 */
int pilot_sequential_compare(const double *a, size_t a_count, const double *b, size_t b_count, double alpha,
                             double margin, pilot_sequential_t *comparison);

/** The speed behind `count` rounds of different work, in the order they were run. */
int pilot_work_per_second(const double *work, const double *seconds, size_t count, double confidence,
                          pilot_speed_t *speed);

#ifdef __cplusplus
}
#endif

#endif /* PILOT_H */
