/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The capacities that a queue pair reports, and whether it provides them */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "objects.h"

#define GRH_BYTES 40
#define ROOM 4096

/*
 * Inline bytes that programs send without asking for room, if there is an SGE
 */
#define SGE_BYTES 16

static const struct ibv_qp_cap asked[] = {
    { .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1,
      .max_recv_sge = 1 },
    { .max_send_wr = 17, .max_send_sge = 4, .max_recv_wr = 5,
      .max_recv_sge = 2 },
    { .max_send_wr = 64, .max_send_sge = 32, .max_recv_wr = 64,
      .max_recv_sge = 32 },
    { .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1,
      .max_recv_sge = 1, .max_inline_data = 61 },
    { .max_send_wr = 1, .max_send_sge = 2, .max_recv_wr = 1,
      .max_recv_sge = 1, .max_inline_data = 512 },
};

static struct ibv_qp *create(enum ibv_qp_type type, struct ibv_cq *cq,
                             struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = *cap,
        .qp_type = type,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(dev.pd, &init);

    if (!qp) {
        fail("ibv_create_qp: %s", strerror(errno));
    }
    *cap = init.cap;
    return qp;
}

static void at_least(const char *what, uint32_t got, uint32_t least)
{
    if (got < least) {
        fail("%s is %u, less than %u", what, got, least);
    }
}

static void check_reported(struct ibv_qp *qp, const struct ibv_qp_cap *wish,
                           const struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    at_least("max_send_wr", cap->max_send_wr, wish->max_send_wr);
    at_least("max_recv_wr", cap->max_recv_wr, wish->max_recv_wr);
    at_least("max_send_sge", cap->max_send_sge, wish->max_send_sge);
    at_least("max_recv_sge", cap->max_recv_sge, wish->max_recv_sge);
    at_least("max_inline_data", cap->max_inline_data, wish->max_inline_data);
    at_least("max_inline_data", cap->max_inline_data,
             SGE_BYTES * wish->max_send_sge);
    must_fail("ibv_query_qp", ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
    if (attr.cap.max_send_wr != cap->max_send_wr ||
        attr.cap.max_recv_wr != cap->max_recv_wr ||
        attr.cap.max_send_sge != cap->max_send_sge ||
        attr.cap.max_recv_sge != cap->max_recv_sge ||
        attr.cap.max_inline_data != cap->max_inline_data) {
        fail("ibv_query_qp has other capacities than ibv_create_qp, inline "
             "%u and %u", attr.cap.max_inline_data, cap->max_inline_data);
    }
}

/* Send @len bytes, which need no region, from @a to @b. */
static int post_inline(struct ibv_qp *a, struct ibv_qp *b, struct ibv_ah *ah,
                       uint8_t *data, uint32_t len)
{
    struct ibv_sge sge = { .addr = (uintptr_t)data, .length = len };
    struct ibv_send_wr wr = {
        .wr_id = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE,
        .sg_list = &sge,
        .num_sge = 1,
    };
    struct ibv_send_wr *bad;

    if (ah) {
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = b->qp_num;
        wr.wr.ud.remote_qkey = QKEY;
    }
    return ibv_post_send(a, &wr, &bad);
}

static struct ibv_ah *way_to_self(void)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {
            .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64,
        },
    };
    struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);

    if (!ah) {
        fail("ibv_create_ah: %s", strerror(errno));
    }
    return ah;
}

/* The reported number of inline bytes works, one more byte does not. */
static void check_inline(struct pair *p, enum ibv_qp_type type, uint32_t room)
{
    struct memory to = new_memory(GRH_BYTES + ROOM, IBV_ACCESS_LOCAL_WRITE);
    uint32_t header = type == IBV_QPT_UD ? GRH_BYTES : 0;
    struct ibv_ah *ah = NULL;
    uint8_t data[ROOM];

    if (room >= ROOM) {
        fail("max_inline_data is %u, more than expected", room);
    }
    if (type == IBV_QPT_UD) {
        ah = way_to_self();
        start_ud(p->a);
        start_ud(p->b);
    } else {
        connect_rc(p->a, p->b);
    }
    fill(data, ROOM, 33);
    post_recv(p->b, &to, 2);
    must_fail("one byte too much inline",
              post_inline(p->a, p->b, ah, data, room + 1), ENOMEM);
    must_fail("inline data", post_inline(p->a, p->b, ah, data, room), 0);
    expect(p->acq, 1);
    if (expect(p->bcq, 2).byte_len != header + room ||
        !filled(to.at + header, room, 33)) {
        fail("%u bytes of inline data are damaged", room);
    }
    if (ah) {
        must_fail("ibv_destroy_ah", ibv_destroy_ah(ah), 0);
    }
    free_memory(&to);
}

void caps(char **args)
{
    static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
    size_t t, i;

    (void)args;
    for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
            struct pair p = { .acq = new_cq(128), .bcq = new_cq(128) };
            struct ibv_qp_cap cap = asked[i];

            p.a = create(types[t], p.acq, &cap);
            p.b = new_qp(types[t], p.bcq, NULL, 0);
            check_reported(p.a, &asked[i], &cap);
            check_inline(&p, types[t], cap.max_inline_data);
            printf("type %d, %u SGEs, %u bytes inline: %u\n", types[t],
                   asked[i].max_send_sge, asked[i].max_inline_data,
                   cap.max_inline_data);
            free_pair(&p);
        }
    }
}
