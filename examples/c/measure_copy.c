/*
 * measure_copy: how fast does a file copy, warm-up and set-up aside?
 *
 *     cc -O2 -o measure_copy measure_copy.c $(pkg-config --cflags --libs ascar)
 *     ./measure_copy [-b BYTES] [-l SECONDS] [-m MAX_MIB] [-s] DIRECTORY
 *
 *       -b BYTES    copied at a time (default 65536)
 *       -l SECONDS  limit of the session (default 60)
 *       -m MAX_MIB  the most that one round copies (default 1024)
 *       -s          make each copy durable (fdatasync); else it ends in the page cache
 *
 * A round writes a file of so many MiB into DIRECTORY, copies it, and removes both. The rounds' work amounts
 * differ, and the time per MiB is the slope of their durations: opening, closing and the first touches, which
 * every round has, are told apart as overhead. The latencies of single blocks are read as well, but are not
 * what the session waits for. Ctrl-C ends it with what it has.
 *
 * Exit status: 0 the goal is reached, 1 the copying failed, 2 bad arguments, 3 ended early.
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pilot.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

struct copying {
    const char *directory;
    size_t block_bytes;
    int durable;
    size_t slowest; /* index of the indicator */
    char *block;
    char from[4096];
    char to[4096];
};

static pilot_session_t *session;

static void interrupted(int signal_number)
{
    (void)signal_number;
    pilot_stop(session);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int write_all(int file, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(file, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        bytes += written;
        count -= (size_t)written;
    }
    return 0;
}

static int fill(const struct copying *copying, size_t bytes)
{
    int file = open(copying->from, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return -1;
    while (bytes > 0) {
        size_t part = bytes < copying->block_bytes ? bytes : copying->block_bytes;
        if (write_all(file, copying->block, part) != 0) {
            close(file);
            return -1;
        }
        bytes -= part;
    }
    return close(file);
}

/* Copies the file; the slowest block took *slowest_s. */
static int copy(const struct copying *copying, double *slowest_s)
{
    int from = open(copying->from, O_RDONLY);
    int to = open(copying->to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int failed = from < 0 || to < 0;
    double before_s = now_s();
    *slowest_s = 0;
    while (!failed) {
        ssize_t got = read(from, copying->block, copying->block_bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            failed = got < 0;
            break;
        }
        failed = write_all(to, copying->block, (size_t)got) != 0;
        double after_s = now_s();
        *slowest_s = fmax(*slowest_s, after_s - before_s);
        before_s = after_s;
    }
    if (!failed && copying->durable)
        failed = fdatasync(to) != 0;
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0)
        failed = 1;
    return failed ? -1 : 0;
}

static int workload(void *user, double work_amount, pilot_round_t *round)
{
    struct copying *copying = user;
    double start_s, slowest_s;
    int failed = fill(copying, (size_t)work_amount * MIB) != 0;
    if (!failed) {
        start_s = now_s();
        failed = copy(copying, &slowest_s) != 0;
        if (!failed) {
            /* Filling is not what is measured. */
            pilot_round_seconds(round, now_s() - start_s);
            pilot_round_reading(round, copying->slowest, 1e3 * slowest_s);
        }
    }
    if (failed)
        fprintf(stderr, "measure_copy: in %s: %s\n", copying->directory, strerror(errno));
    unlink(copying->from);
    unlink(copying->to);
    return failed ? -1 : PILOT_ROUND_DONE;
}

static void progress(void *user, const pilot_summary_t *summary)
{
    (void)user;
    fprintf(stderr, "\r%zu rounds, %.1f s", summary->rounds, summary->seconds);
    if (!isnan(summary->seconds_left))
        fprintf(stderr, ", about %.0f s left ", summary->seconds_left);
    if (summary->ended != PILOT_RUNNING)
        fprintf(stderr, "\n");
}

static int check(int status)
{
    if (status != PILOT_OK)
        fprintf(stderr, "measure_copy: %s\n", pilot_last_error());
    return status;
}

static int report(const struct copying *copying)
{
    pilot_summary_t summary;
    pilot_speed_t speed;
    pilot_finding_t slowest;
    if (check(pilot_summary(session, &summary)) || check(pilot_speed(session, &speed)) ||
        check(pilot_finding(session, copying->slowest, &slowest)))
        return 1;
    printf("speed_mib_per_s %.6g\n", speed.work_per_s);
    if (isnan(speed.ci_low))
        printf("interval none: %s\n", speed.reason);
    else
        printf("interval %.6g to %.6g at %g%%\n", speed.ci_low, speed.ci_high, 100 * speed.confidence);
    printf("overhead_ms %.4g\n", 1e3 * speed.overhead_s);
    printf("slowest_block_ms %.4g\n", slowest.measurement.mean);
    printf("rounds %zu used %zu\n", summary.rounds, summary.rounds_used);
    printf("ended %s\n", summary.why);
    return summary.reached ? 0 : 3;
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return *text != '\0' && *end == '\0' ? value : NAN;
}

static int usage(void)
{
    fprintf(stderr, "usage: measure_copy [-b BYTES] [-l SECONDS] [-m MAX_MIB] [-s] DIRECTORY\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct copying copying = {.block_bytes = 65536};
    double limit_s = 60, most_mib = 1024, bytes = 65536;
    int option, status;
    while ((option = getopt(argc, argv, "b:l:m:s")) != -1) {
        switch (option) {
        case 'b': bytes = number(optarg); break;
        case 'l': limit_s = number(optarg); break;
        case 'm': most_mib = number(optarg); break;
        case 's': copying.durable = 1; break;
        default: return usage();
        }
    }
    if (optind != argc - 1 || !(bytes >= 1 && bytes <= 1024.0 * MIB))
        return usage();
    copying.directory = argv[optind];
    copying.block_bytes = (size_t)bytes;
    copying.block = calloc(1, copying.block_bytes);
    int fits = snprintf(copying.from, sizeof copying.from, "%s/measure-copy-%ld.from", copying.directory,
                        (long)getpid()) < (int)sizeof copying.from;
    snprintf(copying.to, sizeof copying.to, "%s/measure-copy-%ld.to", copying.directory, (long)getpid());
    if (copying.block == NULL || !fits)
        return usage();

    if (check(pilot_create(PILOT_NORMAL, &session)))
        return 1;
    status = pilot_set_session_limit(session, limit_s);
    if (!status)
        status = pilot_set_work_amount(session, 1, most_mib, 1);
    /* Copying a few MiB takes milliseconds: rounds shorter than 20 of them are too short, and a first result
     * is wanted after 10 seconds. */
    if (!status)
        status = pilot_set_short_round(session, 0.02);
    if (!status)
        status = pilot_set_longest_round(session, 5);
    if (!status)
        status = pilot_set_first_result(session, 10);
    if (!status)
        status = pilot_add_indicator(session, "slowest_block_ms", PILOT_ORDINARY, 0, &copying.slowest);
    if (!status)
        status = pilot_set_workload(session, workload, &copying);
    if (!status && isatty(STDERR_FILENO))
        status = pilot_set_progress(session, progress, NULL);
    if (check(status)) {
        pilot_free(session);
        free(copying.block);
        return 2;
    }
    signal(SIGINT, interrupted);
    status = check(pilot_run(session)) ? 1 : report(&copying);
    signal(SIGINT, SIG_DFL);
    pilot_free(session);
    free(copying.block);
    return status;
}
