/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two ends of librpma: the client writes to its server's memory, flushes,
 * reads it back and says so. Both compare each byte.
 *
 * rpma_verify ADDRESS PORT       serves there
 * rpma_verify ADDRESS PORT go    connects to it
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (1u << 20)
#define STEP (64u << 10)
#define ROUNDS 4
/* After the data: the target of an atomic write, and room for messages. */
#define MARK SIZE
#define MESSAGE (SIZE + 64)
#define LENGTH 8
#define TOTAL (MESSAGE + 64)

struct end {
    struct rpma_peer *peer;
    struct rpma_conn *conn;
    struct rpma_mr_local *mr;
    uint8_t *memory;
};

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: %s\n", what, rpma_err_2str(result));
        exit(1);
    }
}

static uint8_t byte_of(int round, size_t at)
{
    uint32_t x = (at + round * 7919u) * 2654435761u;

    return x >> 24 ^ x >> 11;
}

static void compare(const struct end *end, int round)
{
    for (size_t i = 0; i < SIZE; i++) {
        if (end->memory[i] != byte_of(round, i)) {
            fprintf(stderr, "round %d: byte %zu is 0x%x, not 0x%x\n", round,
                    i, end->memory[i], byte_of(round, i));
            exit(1);
        }
    }
}

/* Wait for a completion, of a receive or of another request. */
static struct ibv_wc completion(struct end *end, bool receives)
{
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    int result;

    if (receives) {
        must(rpma_conn_get_rcq(end->conn, &cq), "rpma_conn_get_rcq");
    } else {
        must(rpma_conn_get_cq(end->conn, &cq), "rpma_conn_get_cq");
    }
    while ((result = rpma_cq_get_wc(cq, 1, &wc, NULL)) ==
           RPMA_E_NO_COMPLETION) {
        must(rpma_cq_wait(cq), "rpma_cq_wait");
    }
    must(result, "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc;
}

static void expect(struct end *end, enum rpma_conn_event wanted)
{
    enum rpma_conn_event event;

    must(rpma_conn_next_event(end->conn, &event), "rpma_conn_next_event");
    if (event != wanted) {
        fprintf(stderr, "the event is %s, not %s\n",
                rpma_utils_conn_event_2str(event),
                rpma_utils_conn_event_2str(wanted));
        exit(1);
    }
}

static void post_receive(struct end *end)
{
    must(rpma_recv(end->conn, end->mr, MESSAGE, LENGTH, NULL), "rpma_recv");
}

static void tell(struct end *end)
{
    must(rpma_send(end->conn, end->mr, MESSAGE, LENGTH,
                   RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
    completion(end, false);
}

static void prepare(struct end *end, const char *address,
                    enum rpma_util_ibv_context_type type)
{
    struct ibv_context *context;

    must(rpma_utils_get_ibv_context(address, type, &context),
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(context, &end->peer), "rpma_peer_new");
    end->memory = aligned_alloc(4096, (TOTAL + 4095) / 4096 * 4096);
    if (!end->memory) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    memset(end->memory, 0, TOTAL);
    must(rpma_mr_reg(end->peer, end->memory, TOTAL,
                     RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
                     RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
                     RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &end->mr),
         "rpma_mr_reg");
}

static void finish(struct end *end, struct rpma_conn_cfg *cfg)
{
    must(rpma_conn_delete(&end->conn), "rpma_conn_delete");
    must(rpma_conn_cfg_delete(&cfg), "rpma_conn_cfg_delete");
    must(rpma_mr_dereg(&end->mr), "rpma_mr_dereg");
    must(rpma_peer_delete(&end->peer), "rpma_peer_delete");
    free(end->memory);
}

/* Receives have a CQ of their own. */
static struct rpma_conn_cfg *two_queues(void)
{
    struct rpma_conn_cfg *cfg;

    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_rcq_size(cfg, 4), "rpma_conn_cfg_set_rcq_size");
    must(rpma_conn_cfg_set_sq_size(cfg, 2 * SIZE / STEP),
         "rpma_conn_cfg_set_sq_size");
    return cfg;
}

static void serve(struct end *end, const char *address, const char *port)
{
    struct rpma_conn_cfg *cfg = two_queues();
    struct rpma_conn_private_data data;
    struct rpma_conn_req *request;
    struct rpma_ep *endpoint;
    uint8_t descriptor[UINT8_MAX];
    size_t length;

    must(rpma_mr_get_descriptor_size(end->mr, &length),
         "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(end->mr, descriptor),
         "rpma_mr_get_descriptor");
    must(rpma_ep_listen(end->peer, address, port, &endpoint),
         "rpma_ep_listen");
    must(rpma_ep_next_conn_req(endpoint, cfg, &request),
         "rpma_ep_next_conn_req");
    must(rpma_conn_req_recv(request, end->mr, MESSAGE, LENGTH, NULL),
         "rpma_conn_req_recv");
    data.ptr = descriptor;
    data.len = length;
    must(rpma_conn_req_connect(&request, &data, &end->conn),
         "rpma_conn_req_connect");
    expect(end, RPMA_CONN_ESTABLISHED);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t mark;

        completion(end, true);
        compare(end, round);
        memcpy(&mark, end->memory + MARK, sizeof(mark));
        if (mark != 0x1122334455667700ull + round) {
            fprintf(stderr, "round %d: the atomic write has not come\n", round);
            exit(1);
        }
        post_receive(end);
        tell(end);
    }
    expect(end, RPMA_CONN_CLOSED);
    must(rpma_conn_disconnect(end->conn), "rpma_conn_disconnect");
    must(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
    finish(end, cfg);
}

static void transfer(struct end *end, struct rpma_mr_remote *far, int round)
{
    const uint64_t mark = 0x1122334455667700ull + round;

    for (size_t i = 0; i < SIZE; i++) {
        end->memory[i] = byte_of(round, i);
    }
    for (size_t at = 0; at < SIZE; at += STEP) {
        must(rpma_write(end->conn, far, at, end->mr, at, STEP,
                        RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_write");
    }
    must(rpma_flush(end->conn, far, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_flush");
    completion(end, false);
    must(rpma_atomic_write(end->conn, far, MARK, (const char *)&mark,
                           RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_atomic_write");
    completion(end, false);
    memset(end->memory, 0xee, SIZE);
    for (size_t at = 0; at < SIZE; at += STEP) {
        must(rpma_read(end->conn, end->mr, at, far, at, STEP,
                       at + STEP == SIZE ? RPMA_F_COMPLETION_ALWAYS
                                         : RPMA_F_COMPLETION_ON_ERROR, NULL),
             "rpma_read");
    }
    completion(end, false);
    compare(end, round);
}

static void connect_to(struct end *end, const char *address, const char *port)
{
    struct rpma_conn_cfg *cfg = two_queues();
    struct rpma_conn_private_data data;
    struct rpma_conn_req *request;
    struct rpma_mr_remote *far;

    must(rpma_conn_req_new(end->peer, address, port, cfg, &request),
         "rpma_conn_req_new");
    must(rpma_conn_req_connect(&request, NULL, &end->conn),
         "rpma_conn_req_connect");
    expect(end, RPMA_CONN_ESTABLISHED);
    must(rpma_conn_get_private_data(end->conn, &data),
         "rpma_conn_get_private_data");
    must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &far),
         "rpma_mr_remote_from_descriptor");
    for (int round = 0; round < ROUNDS; round++) {
        post_receive(end);
        transfer(end, far, round);
        tell(end);
        completion(end, true);
    }
    must(rpma_mr_remote_delete(&far), "rpma_mr_remote_delete");
    must(rpma_conn_disconnect(end->conn), "rpma_conn_disconnect");
    expect(end, RPMA_CONN_CLOSED);
    finish(end, cfg);
}

int main(int argc, char **argv)
{
    struct end end = { NULL };

    if (argc == 3) {
        prepare(&end, argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL);
        serve(&end, argv[1], argv[2]);
    } else if (argc == 4) {
        prepare(&end, argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
        connect_to(&end, argv[1], argv[2]);
    } else {
        fprintf(stderr, "usage: rpma_verify ADDRESS PORT [go]\n");
        return 1;
    }
    printf("rpma_verify: fine\n");
    return 0;
}
