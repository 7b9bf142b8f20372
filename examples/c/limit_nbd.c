/*
 * limit_nbd: reads or writes an export of a network block device, as few requests at a time as a stream says.
 *
 *     cc -O2 -o limit_nbd limit_nbd.c $(pkg-config --cflags --libs ascar libnbd)
 *     ./limit_nbd [-b BYTES] [-n REQUESTS] [-w WINDOW] [-p PACE_US] [-r RULES | -k CONTROLLER] [-R] [-W] URI
 *
 *       -b BYTES      of a request (default 4096)
 *       -n REQUESTS   how many (default 1000)
 *       -w WINDOW     requests in flight at most, or to begin with (default 8)
 *       -p PACE_US    the least time between two requests, in microseconds (default 0)
 *       -r RULES      a rule file, as `ascar sharp search` writes it
 *       -k CONTROLLER a published controller, e.g. vegas
 *       -R            at random places, not one after the other
 *       -W            write, each block full of its number's last byte, and flush at the end
 *
 * libnbd sends the requests and takes in the replies (nbd_aio_pread, nbd_aio_pwrite); the stream of congestion.h says
 * when one may leave. The loop asks the stream, sends, and waits in ppoll for a reply or for the time at which the next
 * request may leave. Another client with an event loop of its own looks like it.
 *
 * Exit status: 0 done, 1 the server or the connection failed, 2 bad arguments.
 */
#define _GNU_SOURCE

#include <congestion.h>
#include <errno.h>
#include <getopt.h>
#include <libnbd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As many requests as a window lets be in flight at most. */
enum { SLOTS = 256, RULES_BYTES = 262145, BYTES_MAX = 32 << 20 };

struct client;

/* A request and its buffer. */
struct slot {
    struct client *client;
    struct slot *next_free;
    ascar_request_t request;
    char *buffer;
};

struct client {
    struct nbd_handle *nbd;
    ascar_stream_t *stream;
    struct slot slots[SLOTS];
    struct slot *free_slots;
    uint64_t bytes, blocks;
    long begun, over, failed, in_flight_most, requests;
    int writes, at_random;
    uint64_t random_state;
};

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int failed(const char *what, const char *why)
{
    fprintf(stderr, "limit_nbd: %s: %s\n", what, why);
    return 1;
}

/* A reply came: libnbd calls this while it reads from the socket. */
static int replied(void *user, int *error)
{
    struct slot *slot = user;
    struct client *client = slot->client;
    /* A request that the server refuses has been answered, too. */
    if (ascar_stream_replied(client->stream, &slot->request, now_us()) != ASCAR_OK)
        client->failed++;
    if (*error != 0)
        client->failed++;
    client->over++;
    slot->next_free = client->free_slots;
    client->free_slots = slot;
    return 1; /* libnbd may forget the request */
}

static uint64_t next_block(struct client *client)
{
    if (!client->at_random)
        return (uint64_t)client->begun % client->blocks;
    client->random_state ^= client->random_state << 13;
    client->random_state ^= client->random_state >> 7;
    client->random_state ^= client->random_state << 17;
    return client->random_state % client->blocks;
}

/* Sends the request that may leave now. */
static int send_one(struct client *client)
{
    struct slot *slot = client->free_slots;
    uint64_t block = next_block(client);
    ascar_sending_t sending = {block * client->bytes, (uint32_t)client->bytes, 0, client->writes};
    nbd_completion_callback callback = {.callback = replied, .user_data = slot};
    if (slot->buffer == NULL && (slot->buffer = malloc(client->bytes)) == NULL)
        return failed("memory", strerror(errno));
    if (client->writes)
        memset(slot->buffer, (int)(block & 255), client->bytes);
    if (ascar_stream_sent(client->stream, now_us(), &sending, &slot->request) != ASCAR_OK)
        return failed("sending", ascar_last_error());
    client->free_slots = slot->next_free;
    client->begun++;
    int64_t cookie = client->writes
                         ? nbd_aio_pwrite(client->nbd, slot->buffer, client->bytes, sending.offset_bytes, callback, 0)
                         : nbd_aio_pread(client->nbd, slot->buffer, client->bytes, sending.offset_bytes, callback, 0);
    return cookie < 0 ? failed("sending", nbd_get_error()) : 0;
}

/* Waits for the server, or until a time. */
static int wait_until(struct client *client, uint64_t until_us)
{
    unsigned direction = nbd_aio_get_direction(client->nbd);
    struct pollfd socket = {.fd = nbd_aio_get_fd(client->nbd)};
    struct timespec left, *limit = NULL;
    if (direction & LIBNBD_AIO_DIRECTION_READ)
        socket.events |= POLLIN;
    if (direction & LIBNBD_AIO_DIRECTION_WRITE)
        socket.events |= POLLOUT;
    if (until_us != ASCAR_AFTER_REPLY) {
        uint64_t now = now_us(), wait_us = until_us > now ? until_us - now : 0;
        left.tv_sec = (time_t)(wait_us / 1000000);
        left.tv_nsec = (long)(wait_us % 1000000) * 1000;
        limit = &left;
    }
    if (ppoll(&socket, 1, limit, NULL) < 0)
        return errno == EINTR ? 0 : failed("waiting", strerror(errno));
    if ((direction & LIBNBD_AIO_DIRECTION_READ) && (socket.revents & (POLLIN | POLLHUP | POLLERR))) {
        if (nbd_aio_notify_read(client->nbd) < 0)
            return failed("the connection", nbd_get_error());
    } else if ((direction & LIBNBD_AIO_DIRECTION_WRITE) && (socket.revents & (POLLOUT | POLLHUP | POLLERR))) {
        if (nbd_aio_notify_write(client->nbd) < 0)
            return failed("the connection", nbd_get_error());
    }
    if (nbd_aio_is_dead(client->nbd) || nbd_aio_is_closed(client->nbd))
        return failed("the connection", "the server has ended it");
    return 0;
}

/* All requests. */
static int run(struct client *client)
{
    while (client->over < client->requests) {
        uint64_t at_us = ASCAR_AFTER_REPLY;
        while (client->begun < client->requests && client->free_slots != NULL) {
            uint64_t now = now_us();
            if (ascar_stream_ask(client->stream, now, (uint32_t)client->bytes, &at_us) != ASCAR_OK)
                return failed("asking", ascar_last_error());
            if (at_us > now)
                break;
            if (send_one(client) != 0)
                return 1;
            if (client->begun - client->over > client->in_flight_most)
                client->in_flight_most = client->begun - client->over;
            at_us = ASCAR_AFTER_REPLY;
        }
        if (client->over < client->begun || at_us != ASCAR_AFTER_REPLY) {
            if (wait_until(client, at_us) != 0)
                return 1;
        }
    }
    if (client->failed > 0)
        return failed("the server", "it refused requests");
    if (client->writes && nbd_flush(client->nbd, 0) < 0)
        return failed("flushing", nbd_get_error());
    return 0;
}

static int report(struct client *client, uint64_t begun_us)
{
    double seconds = (double)(now_us() - begun_us) / 1e6;
    uint64_t uses[256];
    size_t rules, used = 0;
    ascar_stream_state_t state;
    if (ascar_stream_state(client->stream, &state) != ASCAR_OK)
        return failed("reading out", ascar_last_error());
    printf("requests %ld\n", client->over);
    printf("seconds %.6f\n", seconds);
    printf("mb_per_s %.3f\n", (double)client->over * (double)client->bytes / 1e6 / seconds);
    printf("in_flight_most %ld\n", client->in_flight_most);
    printf("in_flight %u\n", state.requests_in_flight);
    printf("window %g\n", state.window);
    printf("pace_us %u\n", state.pace_us);
    printf("ack_ewma_us %u\n", state.ack_ewma_us);
    printf("pt_ratio %g\n", state.pt_ratio);
    if (ascar_stream_rule_uses(client->stream, uses, 256, &rules) == ASCAR_OK) {
        for (size_t rule = 0; rule < rules && rule < 256; rule++)
            used += (size_t)uses[rule];
        printf("rules %zu\nrules_used %zu\n", rules, used);
    }
    return 0;
}

static int set_rules(struct client *client, const char *path, double window)
{
    ascar_rule_options_t options = ASCAR_RULE_OPTIONS_DEFAULTS;
    char *text = calloc(1, RULES_BYTES + 1);
    FILE *file = fopen(path, "r");
    int status = 1;
    options.window = window;
    if (text == NULL || file == NULL)
        fprintf(stderr, "limit_nbd: %s: %s\n", path, strerror(errno));
    else if (fread(text, 1, RULES_BYTES, file) == 0)
        fprintf(stderr, "limit_nbd: %s: it is empty, or cannot be read\n", path);
    else if (ascar_stream_set_rules(client->stream, text, &options) != ASCAR_OK)
        fprintf(stderr, "limit_nbd: %s: %s\n", path, ascar_last_error());
    else
        status = 0;
    if (file != NULL)
        fclose(file);
    free(text);
    return status;
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return *text == '\0' || *end != '\0' ? -1 : value;
}

static int usage(void)
{
    fprintf(stderr, "usage: limit_nbd [-b BYTES] [-n REQUESTS] [-w WINDOW] [-p PACE_US] [-r RULES | -k CONTROLLER]"
                    " [-R] [-W] URI\n");
    return 2;
}

/* Connects, and sees how large the export is. */
static int connect_to(struct client *client, const char *uri)
{
    int64_t size;
    client->nbd = nbd_create();
    if (client->nbd == NULL || nbd_connect_uri(client->nbd, uri) < 0 || (size = nbd_get_size(client->nbd)) < 0)
        return failed(uri, nbd_get_error());
    client->blocks = (uint64_t)size / client->bytes;
    return client->blocks > 0 ? 0 : failed(uri, "it is smaller than a request");
}

int main(int argc, char **argv)
{
    static struct client client = {.random_state = 88172645463325252ULL};
    const char *rules = NULL, *controller = NULL;
    double bytes = 4096, requests = 1000, window = 8, pace_us = 0;
    int option, status;
    while ((option = getopt(argc, argv, "b:n:w:p:r:k:RW")) != -1) {
        switch (option) {
        case 'b': bytes = number(optarg); break;
        case 'n': requests = number(optarg); break;
        case 'w': window = number(optarg); break;
        case 'p': pace_us = number(optarg); break;
        case 'r': rules = optarg; break;
        case 'k': controller = optarg; break;
        case 'R': client.at_random = 1; break;
        case 'W': client.writes = 1; break;
        default: return usage();
        }
    }
    if (optind != argc - 1 || (rules != NULL && controller != NULL) || !(bytes >= 1 && bytes <= BYTES_MAX) ||
        !(requests >= 1 && requests <= 1e9) || !(pace_us >= 0 && pace_us <= UINT32_MAX))
        return usage();
    client.bytes = (uint64_t)bytes;
    client.requests = (long)requests;
    for (int place = 0; place < SLOTS; place++) {
        client.slots[place].client = &client;
        client.slots[place].next_free = client.free_slots;
        client.free_slots = &client.slots[place];
    }

    status = ascar_stream_create(&client.stream);
    if (status == ASCAR_OK)
        status = ascar_stream_set_fixed(client.stream, window, (uint32_t)pace_us);
    if (status == ASCAR_OK && controller != NULL)
        status = ascar_stream_set_rival(client.stream, controller, (uint64_t)now_us(), NULL);
    if (status != ASCAR_OK)
        fprintf(stderr, "limit_nbd: %s\n", ascar_last_error());
    else if (rules != NULL)
        status = set_rules(&client, rules, window);
    status = status != 0 ? 2 : connect_to(&client, argv[optind]);
    if (status == 0) {
        uint64_t begun_us = now_us();
        status = run(&client);
        if (status == 0)
            status = report(&client, begun_us);
    }
    /* Requests of a connection that has failed are over with it. */
    nbd_close(client.nbd);
    ascar_stream_free(client.stream);
    for (int place = 0; place < SLOTS; place++)
        free(client.slots[place].buffer);
    return status;
}
