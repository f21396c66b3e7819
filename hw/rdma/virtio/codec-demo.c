/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma-demo.rst: moves the fields of structures
 * between that layout and the layout of docs/specs/virtio-rdma.rst, in place.
 * The rest of the codec knows only the latter.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "codec.h"

/*
 * Fields that follow each other at the same distances in both layouts, or one
 * field that is a u8 in docs/specs/virtio-rdma.rst and a le32 in the demo
 */
typedef struct Run {
    uint16_t at;
    uint16_t demo_at;
    uint16_t size;
    bool is_u8;
} Run;

/* A structure: its runs in ascending order, and its sizes with padding */
typedef struct Struct {
    const Run *runs;
    uint16_t n;
    uint16_t size;
    uint16_t demo_size;
    uint16_t start;                 /* bytes before it, alike in both layouts */
} Struct;

#define AT(type, f) offsetof(struct virtio_rdma_##type, f)
#define SIZE(type, f) sizeof_field(struct virtio_rdma_##type, f)

/* The fields from @first to @last, in the demo from offset @demo_at on */
#define RUN(type, first, last, demo_at) \
    { AT(type, first), demo_at, \
      AT(type, last) + SIZE(type, last) - AT(type, first) }
#define FIELD(type, f, demo_at) RUN(type, f, f, demo_at)
#define U8(type, f, demo_at) \
    { AT(type, f), demo_at, \
      1 + QEMU_BUILD_BUG_ON_ZERO(SIZE(type, f) != 1), true }

static const Run config[] = {
    RUN(config, phys_port_cnt, max_qp_init_rd_atom, 0),
    U8(config, atomic_cap, 96),
    RUN(config, max_mw, local_ca_ack_delay, 100),
};

static const Run query_port_req[] = {
    U8(query_port_req, port, 0),
};

static const Run query_port_rsp[] = {
    U8(query_port_rsp, state, 0),
    U8(query_port_rsp, max_mtu, 4),
    U8(query_port_rsp, active_mtu, 8),
    RUN(query_port_rsp, phys_mtu, active_width, 12),
    RUN(query_port_rsp, active_speed, phys_state, 40),
};

static const Run reg_user_mr_req[] = {
    RUN(reg_user_mr_req, pdn, npages, 0),
};

static const Run create_qp_req[] = {
    RUN(create_qp_req, pdn, sq_sig_type, 0),
    RUN(create_qp_req, max_send_wr, max_inline_data, 8),
};

static const Run qp_attr[] = {
    U8(qp_attr, qp_state, 0),
    U8(qp_attr, cur_qp_state, 4),
    U8(qp_attr, path_mtu, 8),
    U8(qp_attr, path_mig_state, 12),
    RUN(qp_attr, qkey, alt_timeout, 16),
    FIELD(qp_attr, rate_limit, 52),
    FIELD(qp_attr, cap, 56),
    RUN(qp_attr, ah_attr.dgid, ah_attr.traffic_class, 80),
    RUN(qp_attr, ah_attr.sl, ah_attr.dmac, 104),
    RUN(qp_attr, alt_ah_attr.dgid, alt_ah_attr.traffic_class, 120),
    RUN(qp_attr, alt_ah_attr.sl, alt_ah_attr.dmac, 144),
};

static const Run query_pkey_req[] = {
    RUN(query_pkey_req, port, index, 0),
};

static const Run add_gid_req[] = {
    RUN(add_gid_req, gid, index, 0),
    FIELD(add_gid_req, port_num, 24),
};

static const Run del_gid_req[] = {
    FIELD(del_gid_req, index, 0),
    FIELD(del_gid_req, port_num, 4),
};

/* The members of the union wr have the same offsets in both layouts. */
static const Run sq_wqe[] = {
    RUN(sq_wqe, num_sge, opcode, 0),
    FIELD(sq_wqe, wr_id, 16),
    FIELD(sq_wqe, ex, 24),
    FIELD(sq_wqe, wr, 32),
};

static const Run rq_wqe[] = {
    FIELD(rq_wqe, num_sge, 0),
    FIELD(rq_wqe, wr_id, 8),
};

static const Run cqe[] = {
    FIELD(cqe, wr_id, 0),
    U8(cqe, status, 8),
    U8(cqe, opcode, 12),
    RUN(cqe, vendor_err, pkey_index, 16),
    FIELD(cqe, sl, 44),
    FIELD(cqe, port_num, 46),
};

#define STRUCT(name, demo_size, ...) \
    { name, ARRAY_SIZE(name), sizeof(struct virtio_rdma_##name), demo_size, \
      ## __VA_ARGS__ }

static const Struct requests[VIRTIO_RDMA_CMD_MAX + 1] = {
    [VIRTIO_RDMA_CMD_QUERY_PORT] = STRUCT(query_port_req, 4),
    [VIRTIO_RDMA_CMD_REG_USER_MR] = STRUCT(reg_user_mr_req, 48),
    [VIRTIO_RDMA_CMD_CREATE_QP] = STRUCT(create_qp_req, 36),
    [VIRTIO_RDMA_CMD_MODIFY_QP] = STRUCT(qp_attr, 160, AT(modify_qp_req, attr)),
    [VIRTIO_RDMA_CMD_QUERY_PKEY] = STRUCT(query_pkey_req, 8),
    [VIRTIO_RDMA_CMD_ADD_GID] = STRUCT(add_gid_req, 28),
    [VIRTIO_RDMA_CMD_DEL_GID] = STRUCT(del_gid_req, 8),
};

static const Struct responses[VIRTIO_RDMA_CMD_MAX + 1] = {
    [VIRTIO_RDMA_CMD_QUERY_PORT] = STRUCT(query_port_rsp, 172),
    [VIRTIO_RDMA_CMD_QUERY_QP] = STRUCT(qp_attr, 160),
};

static const Struct demo_config = STRUCT(config, VIRTIO_RDMA_DEMO_CONFIG_SIZE);
static const Struct demo_send = STRUCT(sq_wqe, VIRTIO_RDMA_DEMO_SEND_WQE_SIZE);
static const Struct demo_recv = STRUCT(rq_wqe, 16);
static const Struct demo_cqe = STRUCT(cqe, VIRTIO_RDMA_DEMO_CQE_SIZE);

QEMU_BUILD_BUG_ON(VIRTIO_RDMA_DEMO_CQE_SIZE > VIRTIO_RDMA_CQE_ROOM);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_DEMO_SEND_WQE_SIZE > VIRTIO_RDMA_WQE_ROOM);

/* Room for any structure */
#define ROOM VIRTIO_RDMA_DEMO_CONFIG_SIZE

static void from_demo(const Struct *d, uint8_t *buf)
{
    uint8_t from[ROOM];

    memcpy(from, buf, d->demo_size);
    memset(buf, 0, MAX(d->size, d->demo_size));
    for (const Run *r = d->runs; r < d->runs + d->n; r++) {
        if (r->is_u8) {
            uint32_t value = ldl_le_p(from + r->demo_at);

            /* Truncation could turn a wrong number into a valid one. */
            buf[r->at] = MIN(value, UINT8_MAX);
        } else {
            memcpy(buf + r->at, from + r->demo_at, r->size);
        }
    }
}

static void to_demo(const Struct *d, uint8_t *buf)
{
    uint8_t from[ROOM];

    memcpy(from, buf, d->size);
    memset(buf, 0, d->demo_size);
    for (const Run *r = d->runs; r < d->runs + d->n; r++) {
        memcpy(buf + r->demo_at, from + r->at, r->size);
    }
}

void virtio_rdma_demo_put_config(uint8_t *config)
{
    to_demo(&demo_config, config);
}

size_t virtio_rdma_demo_request_min(uint8_t cmd, size_t min)
{
    const Struct *d = &requests[cmd];
    const Run *last;

    if (!d->n) {
        return min;
    }
    last = &d->runs[d->n - 1];
    return d->start + last->demo_at +
           (last->is_u8 ? sizeof(uint32_t) : last->size);
}

void virtio_rdma_demo_get_request(uint8_t cmd, uint8_t *req)
{
    if (requests[cmd].n) {
        from_demo(&requests[cmd], req + requests[cmd].start);
    }
}

size_t virtio_rdma_demo_response_size(uint8_t cmd, size_t size)
{
    return responses[cmd].n ? responses[cmd].demo_size : size;
}

void virtio_rdma_demo_put_response(uint8_t cmd, uint8_t *rsp)
{
    if (responses[cmd].n) {
        to_demo(&responses[cmd], rsp);
    }
}

/* @len: bytes in guest memory; @room: bytes at @wqe */
static size_t get_wqe(const Struct *d, uint8_t *wqe, size_t len,
                      size_t room)
{
    size_t fixed = d->demo_size;

    if (len < fixed) {
        memset(wqe + len, 0, fixed - len);
        from_demo(d, wqe);
        return MIN(len, d->size - 1);
    }
    from_demo(d, wqe);
    memmove(wqe + d->size, wqe + fixed, MIN(len, room) - fixed);
    return len - fixed + d->size;
}

size_t virtio_rdma_demo_get_send(uint8_t *wqe, size_t len, size_t room)
{
    uint8_t *flags = wqe + AT(sq_wqe, send_flags);

    len = get_wqe(&demo_send, wqe, len, room);
    if (ldl_le_p(wqe + AT(sq_wqe, num_sge))) {
        stl_le_p(flags, ldl_le_p(flags) & ~RDMA_SEND_INLINE);
    }
    return len;
}

size_t virtio_rdma_demo_get_recv(uint8_t *wqe, size_t len, size_t room)
{
    return get_wqe(&demo_recv, wqe, len, room);
}

void virtio_rdma_demo_put_cqe(uint8_t *cqe)
{
    to_demo(&demo_cqe, cqe);
}
