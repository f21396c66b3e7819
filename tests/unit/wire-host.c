/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include "wire-host.h"

static void *host_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    WireHost *h = opaque;
    uint64_t room;

    g_assert_cmpuint(*len, >, 0);
    if (addr < WIRE_HOST_BASE || addr - WIRE_HOST_BASE >= h->size) {
        return NULL;
    }
    addr -= WIRE_HOST_BASE;
    room = h->size - addr;
    if (h->scattered) {
        room = RDMA_PAGE_SIZE - addr % RDMA_PAGE_SIZE;
    }
    *len = MIN(*len, room);
    h->maps++;
    return h->mem + addr;
}

static void host_unmap(void *opaque, void *host, uint64_t len, bool write,
                       uint64_t access_len)
{
    WireHost *h = opaque;
    uint8_t *p = host;

    g_assert_true(p >= h->mem && p < h->mem + h->size);
    g_assert_cmpuint(len, <=, h->mem + h->size - p);
    g_assert_cmpuint(access_len, <=, len);
    g_assert_cmpuint(h->maps, >, 0);
    h->maps--;
}

static bool host_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                        uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    WireHost *h = opaque;
    uint64_t now;
    uint8_t *p;

    g_assert_cmpuint(addr % 8, ==, 0);
    if (addr < WIRE_HOST_BASE || addr - WIRE_HOST_BASE >= h->size) {
        return false;
    }
    p = h->mem + (addr - WIRE_HOST_BASE);
    memcpy(old, p, 8);
    *old = GUINT64_FROM_LE(*old);
    if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        now = *old + compare_add;
    } else if (opcode == RDMA_WR_ATOMIC_WRITE) {
        now = compare_add;
    } else {
        g_assert_cmpuint(opcode, ==, RDMA_WR_ATOMIC_CMP_AND_SWP);
        now = *old == compare_add ? swap : *old;
    }
    now = GUINT64_TO_LE(now);
    memcpy(p, &now, 8);
    return true;
}

static void host_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                        uint32_t count)
{
    WireHost *h = opaque;

    g_assert_cmpuint(qpn, <, h->max_qp);
    h->retired[qpn][queue] += count;
}

static bool host_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                          bool solicited)
{
    WireHost *h = opaque;
    WireWc entry = { cqn, solicited, *wc };

    if (h->cq_broken) {
        return false;
    }
    g_array_append_val(h->wcs, entry);
    return true;
}

static void host_event(void *opaque, const RdmaEvent *event)
{
    WireHost *h = opaque;

    g_array_append_val(h->events, *event);
}

static RdmaNext host_next_send(void *opaque, uint32_t qpn, bool flush,
                               RdmaSendWr *wr)
{
    WireHost *h = opaque;

    return consumer_next_send(h->consumer, qpn, wr);
}

static void host_put_back_send(void *opaque, uint32_t qpn,
                               const RdmaSendWr *wr)
{
    WireHost *h = opaque;

    consumer_put_back_send(h->consumer, qpn);
}

static bool host_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                           bool flush, RdmaRecvWr *wr)
{
    WireHost *h = opaque;

    return consumer_next_recv(h->consumer, queue, id, wr);
}

static void host_wake(void *opaque)
{
}

WireHost *wire_host_new(const RoceConfig *config, uint64_t size)
{
    static const RoceOps ops = {
        .map = host_map,
        .unmap = host_unmap,
        .atomic = host_atomic,
        .consumer = {
            .retire = host_retire,
            .complete = host_complete,
            .event = host_event,
            .next_send = host_next_send,
            .put_back_send = host_put_back_send,
            .next_recv = host_next_recv,
        },
        .wake = host_wake,
    };
    WireHost *h = g_new0(WireHost, 1);

    h->size = size;
    h->max_qp = config->max_qp;
    h->retired = g_malloc0_n(h->max_qp, sizeof(*h->retired));
    h->mem = g_malloc0(size);
    h->wcs = g_array_new(false, false, sizeof(WireWc));
    h->events = g_array_new(false, false, sizeof(RdmaEvent));
    h->consumer = consumer_new();
    h->engine = roce_new(config, &ops, h);
    return h;
}

void wire_host_free(WireHost *h)
{
    roce_free(h->engine);
    consumer_free(h->consumer);
    g_array_unref(h->wcs);
    g_array_unref(h->events);
    g_free(h->retired);
    g_free(h->mem);
    g_free(h);
}

uint64_t wire_host_alloc(WireHost *h, uint32_t npages)
{
    uint64_t addr = WIRE_HOST_BASE + h->used;

    g_assert_cmpuint(npages, <=, (h->size - h->used) / RDMA_PAGE_SIZE);
    h->used += (uint64_t)npages * RDMA_PAGE_SIZE;
    return addr;
}

void *wire_host_ptr(WireHost *h, uint64_t addr)
{
    return h->mem + (addr - WIRE_HOST_BASE);
}

uint64_t wire_host_add_region(WireHost *h, uint32_t key, uint32_t pdn,
                              uint32_t access, uint64_t iova,
                              uint64_t length)
{
    uint32_t npages = (iova % RDMA_PAGE_SIZE + length + RDMA_PAGE_SIZE - 1) /
                      RDMA_PAGE_SIZE;
    uint64_t base = wire_host_alloc(h, npages);
    RdmaMrAttr attr = {
        .mrn = key >> 8,
        .pdn = pdn,
        .type = RDMA_MR_USER,
        .access = access,
        .lkey = key,
        .rkey = key,
        .iova = iova,
        .length = length,
        .npages = npages,
        .pages = g_new(uint64_t, npages),
    };
    uint32_t i;

    for (i = 0; i < npages; i++) {
        attr.pages[i] = base + (uint64_t)(npages - 1 - i) * RDMA_PAGE_SIZE;
    }
    base = attr.pages[0];
    g_assert_cmpint(roce_mr_create(h->engine, &attr), ==, 0);
    return base;
}

void wire_host_region_copy(WireHost *h, uint64_t first_page, uint64_t iova,
                           uint64_t offset, void *buf, uint64_t len,
                           bool to_region)
{
    uint8_t *b = buf;

    offset += iova % RDMA_PAGE_SIZE;
    while (len) {
        uint64_t in_page = offset % RDMA_PAGE_SIZE;
        uint64_t n = MIN(len, RDMA_PAGE_SIZE - in_page);
        uint64_t page = first_page - (offset - in_page);
        uint8_t *p = wire_host_ptr(h, page + in_page);

        memcpy(to_region ? p : b, to_region ? b : p, n);
        b += n;
        offset += n;
        len -= n;
    }
}
