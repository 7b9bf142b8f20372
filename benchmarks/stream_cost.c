/*
 * stream_cost: what one request costs through congestion.h: a reply, the question whether the next may leave, its leaving.
 *
 *     stream_cost RULES EXTENDED BATCHES
 *
 * 400 streams with 8 requests in flight each; the replies come in random order. The processor time of requests is taken in
 * batches of 64, for the clock itself costs some 200 ns; a percentile is that of the batches' means. Prints a line of JSON.
 */
#define _POSIX_C_SOURCE 200809L

#include <congestion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS = 400, DEPTH = 8, REQUESTS = STREAMS * DEPTH, BATCH = 64, TEXT_BYTES = 65536, BYTES = 4096 };

struct flying {
    ascar_stream_t *stream;
    ascar_request_t request;
};

static struct flying flying[REQUESTS];
static uint64_t random_state = 88172645463325252ULL, now_us = 1000000, held_back;

static uint64_t below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

static void check(int status)
{
    if (status == ASCAR_OK)
        return;
    fprintf(stderr, "stream_cost: %s\n", ascar_last_error());
    exit(1);
}

static void leave(struct flying *one, uint64_t offset_bytes)
{
    ascar_sending_t sending = {offset_bytes, BYTES, 0, 0};
    uint64_t at_us;
    check(ascar_stream_ask(one->stream, now_us, BYTES, &at_us));
    /* The extended controller has a window of 1 now and then, to see the shortest process time. */
    if (at_us > now_us)
        held_back++;
    else
        check(ascar_stream_sent(one->stream, now_us, &sending, &one->request));
}

static int by_value(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

int main(int argc, char **argv)
{
    static char text[TEXT_BYTES];
    ascar_rule_options_t options = ASCAR_RULE_OPTIONS_DEFAULTS;
    FILE *file = argc == 4 ? fopen(argv[1], "r") : NULL;
    if (file == NULL || fread(text, 1, TEXT_BYTES - 1, file) == 0) {
        fprintf(stderr, "usage: stream_cost RULES EXTENDED BATCHES\n");
        return 2;
    }
    fclose(file);
    options.extended = atoi(argv[2]);
    options.window = 2 * DEPTH;
    size_t batches = (size_t)atol(argv[3]), warm_up = batches / 10;
    double *each_ns = calloc(batches, sizeof *each_ns), sum_ns = 0;
    if (batches == 0 || each_ns == NULL)
        return 2;
    for (int number = 0; number < STREAMS; number++) {
        ascar_stream_t *stream;
        options.seed = (uint64_t)number;
        check(ascar_stream_create(&stream));
        check(ascar_stream_set_rules(stream, text, &options));
        for (int place = 0; place < DEPTH; place++) {
            struct flying *one = &flying[number * DEPTH + place];
            one->stream = stream;
            leave(one, 0);
        }
    }
    for (size_t batch = 0; batch < warm_up + batches; batch++) {
        struct flying *chosen[BATCH];
        struct timespec before, after;
        for (int at = 0; at < BATCH; at++)
            chosen[at] = &flying[below(REQUESTS)];
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        for (int at = 0; at < BATCH; at++) {
            now_us += 20;
            if (chosen[at]->request.stream != 0)
                check(ascar_stream_replied(chosen[at]->stream, &chosen[at]->request, now_us));
            leave(chosen[at], now_us << 12);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        if (batch >= warm_up)
            each_ns[batch - warm_up] =
                ((double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec)) / BATCH;
    }
    size_t used = 0, found = 0;
    uint64_t uses[256], all[256] = {0};
    for (int number = 0; number < STREAMS; number++) {
        check(ascar_stream_rule_uses(flying[number * DEPTH].stream, uses, 256, &found));
        for (size_t rule = 0; rule < found; rule++)
            all[rule] += uses[rule];
    }
    for (size_t rule = 0; rule < found; rule++)
        used += all[rule] > 0;
    for (size_t batch = 0; batch < batches; batch++)
        sum_ns += each_ns[batch];
    qsort(each_ns, batches, sizeof *each_ns, by_value);
    printf("{\"rules\": %zu, \"rules_used\": %zu, \"held_back\": %llu, \"mean_ns\": %.1f, \"p50_ns\": %.1f, \"p99_ns\": %.1f}\n",
           found, used, (unsigned long long)held_back, sum_ns / (double)batches, each_ns[batches / 2],
           each_ns[batches * 99 / 100]);
    for (int number = 0; number < STREAMS; number++)
        ascar_stream_free(flying[number * DEPTH].stream);
    free(each_ns);
    return 0;
}
