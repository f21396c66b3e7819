/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: the layout of the demo's driver. All other
 * files know only the layout of docs/specs/virtio-rdma.rst. This one moves the
 * fields. Its offsets are literal, those of docs/specs/virtio-rdma-demo.rst, so
 * that they do not depend on what the device has been compiled with.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

/* Fields of @size bytes; 0: one field, u8 in one layout, le32 in the other */
typedef struct Move {
    uint16_t at;
    uint16_t demo_at;
    uint16_t size;
} Move;

#define LE32 0
#define MAX_MOVES 11

typedef struct Layout {
    uint8_t cmd;                    /* of a request or response */
    uint16_t size;
    uint16_t demo_size;
    uint16_t start;                 /* bytes before the fields that move */
    Move moves[MAX_MOVES];          /* ends with an empty one */
} Layout;

#define QP_ATTR { \
    { 0, 0, LE32 }, { 1, 4, LE32 }, { 2, 8, LE32 }, { 3, 12, LE32 }, \
    { 4, 16, 35 }, { 39, 52, 4 }, { 43, 56, 20 }, { 63, 80, 23 }, \
    { 86, 104, 10 }, { 96, 120, 23 }, { 119, 144, 10 }, \
}

static const Layout requests[] = {
    { VIRTIO_RDMA_CMD_QUERY_PORT, 1, 4, 0, { { 0, 0, LE32 } } },
    { VIRTIO_RDMA_CMD_REG_USER_MR, 44, 48, 0, { { 0, 0, 44 } } },
    { VIRTIO_RDMA_CMD_CREATE_QP, 66, 36, 0, { { 0, 0, 6 }, { 6, 8, 28 } } },
    { VIRTIO_RDMA_CMD_MODIFY_QP, 137, 168, 8, QP_ATTR },
    { VIRTIO_RDMA_CMD_QUERY_PKEY, 6, 8, 0, { { 0, 0, 6 } } },
    { VIRTIO_RDMA_CMD_ADD_GID, 26, 28, 0, { { 0, 0, 22 }, { 22, 24, 4 } } },
    { VIRTIO_RDMA_CMD_DEL_GID, 6, 8, 0, { { 0, 0, 2 }, { 2, 4, 4 } } },
};

static const Layout responses[] = {
    { VIRTIO_RDMA_CMD_QUERY_PORT, 161, 172, 0,
      { { 0, 0, LE32 }, { 1, 4, LE32 }, { 2, 8, LE32 }, { 3, 12, 27 },
        { 30, 40, 3 } } },
    { VIRTIO_RDMA_CMD_QUERY_QP, 129, 160, 0, QP_ATTR },
};

static const Layout send_wqe = {
    0, 75, 88, 0,
    { { 0, 0, 12 }, { 12, 16, 8 }, { 20, 24, 4 }, { 24, 32, 51 } },
};

static const Layout recv_wqe = {
    0, 12, 16, 0, { { 0, 0, 4 }, { 4, 8, 8 } },
};

static const Layout cqe_layout = {
    0, 38, 48, 0,
    { { 0, 0, 8 }, { 8, 8, LE32 }, { 9, 12, LE32 }, { 10, 16, 26 },
      { 36, 44, 1 }, { 37, 46, 1 } },
};

static const Layout config_layout = {
    0, 640, 648, 0, { { 0, 0, 96 }, { 96, 96, LE32 }, { 97, 100, 31 } },
};

static const Layout *find(const Layout *layouts, size_t n, uint8_t cmd)
{
    for (size_t i = 0; i < n; i++) {
        if (layouts[i].cmd == cmd) {
            return &layouts[i];
        }
    }
    return NULL;
}

static bool is_last(const Layout *l, const Move *m)
{
    return m == l->moves + MAX_MOVES || (m > l->moves && !m->at);
}

/* Padding is not zero, because a driver may leave any bytes there. */
static void to_demo(const Layout *l, const uint8_t *in, uint8_t *out)
{
    memset(out, 0x5a, l->demo_size);
    memcpy(out, in, l->start);
    in += l->start;
    out += l->start;
    for (const Move *m = l->moves; !is_last(l, m); m++) {
        if (m->size) {
            memcpy(out + m->demo_at, in + m->at, m->size);
        } else {
            stl_le_p(out + m->demo_at, in[m->at]);
        }
    }
}

/* The device sets padding to 0. */
static void from_demo(const Layout *l, const uint8_t *in, uint8_t *out)
{
    g_autofree uint8_t *rest = g_memdup2(in, l->demo_size);

    memset(out, 0, l->size);
    for (const Move *m = l->moves; !is_last(l, m); m++) {
        if (m->size) {
            memcpy(out + m->at, in + m->demo_at, m->size);
        } else {
            g_assert_cmpuint(ldl_le_p(in + m->demo_at), <=, UINT8_MAX);
            out[m->at] = in[m->demo_at];
        }
        memset(rest + m->demo_at, 0, m->size ?: 4);
    }
    for (size_t i = 0; i < l->demo_size; i++) {
        g_assert_cmphex(rest[i], ==, 0);
    }
}

/* Where the first @len bytes of the structure end */
static size_t demo_end(const Layout *l, size_t len)
{
    size_t end = 0;

    if (len <= l->start) {
        return len;
    }
    len -= l->start;
    for (const Move *m = l->moves; !is_last(l, m) && m->at < len; m++) {
        end = m->demo_at + (m->size ? MIN(m->size, len - m->at) : 4);
    }
    return l->start + end;
}

/* @len bytes, of a structure that other bytes follow, or of a part of it */
static size_t convert(const Layout *l, const void *in, size_t len, void *out)
{
    uint8_t *whole = g_alloca(l->size);

    memset(whole, 0, l->size);
    memcpy(whole, in, MIN(len, l->size));
    to_demo(l, whole, out);
    if (len < l->size) {
        return demo_end(l, len);
    }
    memcpy((uint8_t *)out + l->demo_size, (const uint8_t *)in + l->size,
           len - l->size);
    return l->demo_size + len - l->size;
}

void qrdma_use_demo(QRdma *d)
{
    static const uint8_t mac[RDMA_MAC_LEN] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };

    d->demo = true;
    memcpy(d->mac, mac, sizeof(mac));
}

size_t qrdma_demo_request(uint8_t cmd, const void *req, size_t len, void *out)
{
    const Layout *l = find(requests, ARRAY_SIZE(requests), cmd);

    if (l) {
        return convert(l, req, len, out);
    }
    if (len) {
        memcpy(out, req, len);
    }
    return len;
}

size_t qrdma_demo_response_size(uint8_t cmd, size_t size)
{
    const Layout *l = find(responses, ARRAY_SIZE(responses), cmd);

    return l && size >= l->size ? size - l->size + l->demo_size : size;
}

size_t qrdma_demo_response(uint8_t cmd, const void *in, size_t len, void *rsp)
{
    const Layout *l = find(responses, ARRAY_SIZE(responses), cmd);

    if (!l || len < l->demo_size) {
        memcpy(rsp, in, len);
        return len;
    }
    g_assert_cmpuint(len, ==, l->demo_size);
    from_demo(l, in, rsp);
    return l->size;
}

size_t qrdma_demo_wqe(bool send, const void *wqe, size_t len, void *out)
{
    return convert(send ? &send_wqe : &recv_wqe, wqe, len, out);
}

void qrdma_demo_cqe(const void *in, void *cqe)
{
    from_demo(&cqe_layout, in, cqe);
}

void qrdma_demo_config(const void *in, void *config)
{
    from_demo(&config_layout, in, config);
}
