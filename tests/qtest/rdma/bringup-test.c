/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: the bring-up that docs/specs/virtio-rdma-bringup.rst shows, with
 * its bytes. Letters other than digits stand for bytes that differ from run to
 * run: nn is the number of the region, kk the low byte of its key, pp an
 * address and mm a MAC address.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define RING_SIZE 64
#define CQE_SIZE 38

typedef struct BringUp {
    QRdma *dev;
    uint8_t mrn[3];
    uint8_t key;
    uint64_t list;
    uint64_t page;
} BringUp;

/* Parse the bytes of @text, and fill in the bytes that letters stand for. */
static size_t parse(const BringUp *b, const char *text, uint8_t *bytes)
{
    uint64_t list = cpu_to_le64(b->list);
    unsigned n_list = 0, n_mac = 0, n_mrn = 0;
    size_t n = 0;

    while (*text) {
        if (*text == ' ') {
            text++;
            continue;
        }
        switch (*text) {
        case 'k':
            bytes[n] = b->key;
            break;
        case 'n':
            bytes[n] = b->mrn[n_mrn++ % sizeof(b->mrn)];
            break;
        case 'p':
            bytes[n] = ((uint8_t *)&list)[n_list++];
            break;
        case 'm':
            bytes[n] = b->dev->mac[n_mac++];
            break;
        default:
            bytes[n] = g_ascii_xdigit_value(text[0]) << 4 |
                       g_ascii_xdigit_value(text[1]);
            break;
        }
        text += 2;
        n++;
    }
    return n;
}

/* Give the command in @req, and assert that its whole answer is @answer. */
static void command_bytes(BringUp *b, const uint8_t *req, size_t req_len,
                          const char *answer)
{
    QRdma *d = b->dev;
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint8_t want[64], got[64];
    size_t want_len;
    QRdmaDesc desc[2];
    uint16_t head;
    uint32_t len;

    qrdma_write(d, d->ctrl_req, req, req_len);
    desc[0] = (QRdmaDesc) { d->ctrl_req, req_len, false };
    desc[1] = (QRdmaDesc) { d->ctrl_rsp, sizeof(got), true };
    qrdma_ring_add(ring, desc, 2);
    qrdma_ring_kick(ring);
    qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
    qrdma_read(d, d->ctrl_rsp, got, sizeof(got));
    if (strstr(answer, "kk")) {
        /* The device chooses the region's number, and its key's low byte. */
        memcpy(b->mrn, got + 1, sizeof(b->mrn));
        b->key = got[5];
    }
    want_len = parse(b, answer, want);
    g_assert_cmpmem(want, want_len, got, len);
}

static void command(BringUp *b, const char *request, const char *answer)
{
    uint8_t req[256];

    command_bytes(b, req, parse(b, request, req), answer);
}

typedef struct Attr {
    unsigned offset;
    const char *bytes;
} Attr;

static void modify_qp(BringUp *b, const char *request, const Attr *attr)
{
    uint8_t req[1 + 137] = {};
    size_t len = parse(b, request, req);

    g_assert_cmpuint(len, ==, 9);
    for (; attr->bytes; attr++) {
        parse(b, attr->bytes, req + len + attr->offset);
    }
    command_bytes(b, req, sizeof(req), "00");
}

static void post(BringUp *b, uint32_t vq, const char *text)
{
    uint64_t buf = qrdma_alloc(b->dev, 4096);
    uint8_t wqe[128];
    size_t len = parse(b, text, wqe);
    QRdmaDesc desc = { buf, len, false };

    qrdma_write(b->dev, buf, wqe, len);
    qrdma_ring_add(qrdma_ring(b->dev, vq), &desc, 1);
    qrdma_ring_kick(qrdma_ring(b->dev, vq));
}

static void expect_used(BringUp *b, uint32_t vq)
{
    uint16_t head;
    uint32_t len;

    qrdma_wait_until(b->dev,
                     qrdma_ring_get(qrdma_ring(b->dev, vq), &head, &len));
    g_assert_cmpuint(len, ==, 0);
}

static void expect_cqe(BringUp *b, uint64_t buf, const char *text)
{
    uint8_t want[CQE_SIZE], got[CQE_SIZE];
    uint16_t head;
    uint32_t len;

    qrdma_wait_until(b->dev,
                     qrdma_ring_get(qrdma_ring(b->dev, VIRTIO_RDMA_CQ_VQ(0)),
                                    &head, &len));
    qrdma_read(b->dev, buf, got, sizeof(got));
    g_assert_cmpuint(parse(b, text, want), ==, sizeof(want));
    g_assert_cmpmem(want, sizeof(want), got, len);
}

#define EIGHT "00 00 00 00 00 00 00 00 "

static void test_bring_up(void)
{
    static const uint8_t hello[] = { 'h', 'e', 'l', 'l', 'o' };
    BringUp b = { .dev = test_device_reset() };
    QRdma *d = b.dev;
    uint32_t sq, rq;
    uint64_t cqes, le;
    uint8_t got[5];

    qrdma_start(d, QRDMA_F(VIRTIO_F_VERSION_1) | QRDMA_F(VIRTIO_F_RING_RESET),
                RING_SIZE);
    sq = VIRTIO_RDMA_SQ_VQ(d->max_cq, 2);
    rq = VIRTIO_RDMA_RQ_VQ(d->max_cq, 2);
    for (uint32_t qpn = 3; qpn < d->max_qp; qpn++) {
        qrdma_ring_reset(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, qpn)));
    }
    b.page = qrdma_alloc(d, 4096);
    b.list = qrdma_alloc(d, 4096);
    le = cpu_to_le64(b.page);
    qrdma_write(d, b.list, &le, sizeof(le));

    command(&b, "10 " EIGHT "00 00 ff ff c0 a8 00 01"
                "02 00 00 00  00 00  01 00 00 00", "00");
    command(&b, "04", "00  01 00 00 00");
    command(&b, "02  40 00 00 00", "00  00 00 00 00");
    cqes = qrdma_alloc(d, RING_SIZE * CQE_SIZE);
    for (int i = 0; i < RING_SIZE; i++) {
        QRdmaDesc desc = { cqes + i * CQE_SIZE, CQE_SIZE, true };

        qrdma_ring_add(qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(0)), &desc, 1);
    }
    command(&b, "09  01 00 00 00  01 00 00 00"
                "00 00 20 00 00 00 00 00  00 10 00 00 00 00 00 00"
                "00 00 20 00 00 00 00 00  pp pp pp pp pp pp pp pp"
                "01 00 00 00",
            "00  nn nn nn 00  kk nn nn nn  00 00 00 00");
    command(&b, "0b  01 00 00 00  02  01"
                "10 00 00 00  01 00 00 00  00 00 00 00"
                "10 00 00 00  01 00 00 00  00 00 00 00"
                "00 00 00 00  00 00 00 00  00 00 00 00"
                EIGHT EIGHT EIGHT,
            "00  02 00 00 00");

    modify_qp(&b, "0c  02 00 00 00  39 00 00 00", (Attr[]) {
        { 0, "01" }, { 33, "01" }, {},
    });
    modify_qp(&b, "0c  02 00 00 00  81 91 12 00", (Attr[]) {
        { 0, "02" }, { 2, "03" }, { 8, "00 01 00 00" },
        { 16, "02 00 00 00" }, { 31, "01" }, { 32, "0c" },
        { 63, EIGHT "00 00 ff ff c0 a8 00 01" }, { 84, "40" }, { 88, "01" },
        { 90, "mm mm mm mm mm mm" }, {},
    });
    modify_qp(&b, "0c  02 00 00 00  01 2e 01 00", (Attr[]) {
        { 0, "03" }, { 12, "00 01 00 00" }, { 30, "01" }, { 34, "0e" },
        { 35, "07" }, { 36, "07" }, {},
    });

    qrdma_write(d, b.page, hello, sizeof(hello));
    post(&b, rq, "01 00 00 00  11 00 00 00 00 00 00 00"
                 "00 08 20 00 00 00 00 00  40 00 00 00  kk nn nn nn");
    post(&b, sq, "01 00 00 00  02 00 00 00  02 00 00 00"
                 "22 00 00 00 00 00 00 00"
                 EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT "00 00 00 00 00 00 00"
                 "00 00 20 00 00 00 00 00  05 00 00 00  kk nn nn nn");
    expect_cqe(&b, cqes,
               "11 00 00 00 00 00 00 00  00  80  00 00 00 00  05 00 00 00"
               "00 00 00 00  02 00 00 00  02 00 00 00  00 00 00 00  00 00"
               "00  01");
    expect_cqe(&b, cqes + CQE_SIZE,
               "22 00 00 00 00 00 00 00  00  00  00 00 00 00  05 00 00 00"
               "00 00 00 00  02 00 00 00  00 00 00 00  00 00 00 00  00 00"
               "00  01");
    expect_used(&b, rq);
    expect_used(&b, sq);
    qrdma_read(d, b.page + 0x800, got, sizeof(got));
    g_assert_cmpmem(got, sizeof(got), hello, sizeof(hello));
    command(&b, "12  00 00 00 00  02 00 00 00", "00");
}

const QRdmaTest bringup_tests[] = {
    { "as-the-spec-shows-it", test_bring_up },
    {}
};
