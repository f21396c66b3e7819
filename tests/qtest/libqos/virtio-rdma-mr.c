/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: memory regions.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

static uint32_t pages_of(uint64_t iova, uint64_t length)
{
    return DIV_ROUND_UP(iova % RDMA_PAGE_SIZE + length, RDMA_PAGE_SIZE);
}

uint64_t qrdma_write_pages(QRdma *d, const uint64_t *pages, uint32_t npages)
{
    uint64_t table = qrdma_alloc(d, npages * sizeof(uint64_t));
    g_autofree uint64_t *le = g_new(uint64_t, npages);

    for (uint32_t i = 0; i < npages; i++) {
        le[i] = cpu_to_le64(qrdma_dma(d, pages[i]));
    }
    qrdma_write(d, table, le, npages * sizeof(uint64_t));
    return table;
}

#define TABLE_ENTRIES 512

/* The layout of the demo has two levels: a table of pages of a flat table. */
static uint64_t table_of(QRdma *d, const uint64_t *pages, uint32_t npages)
{
    uint64_t table = qrdma_write_pages(d, pages, npages);
    g_autofree uint64_t *tables = g_new(uint64_t, npages);
    uint32_t n = DIV_ROUND_UP(npages, TABLE_ENTRIES);

    if (!d->demo) {
        return table;
    }
    for (uint32_t i = 0; i < n; i++) {
        tables[i] = table + i * RDMA_PAGE_SIZE;
    }
    return qrdma_write_pages(d, tables, n);
}

void qrdma_alloc_pages(QRdma *d, uint32_t npages, uint64_t **pages,
                       uint64_t *table)
{
    uint64_t mem = qrdma_alloc(d, (uint64_t)npages * RDMA_PAGE_SIZE);

    *pages = qrdma_own(d, npages * sizeof(uint64_t));
    for (uint32_t i = 0; i < npages; i++) {
        (*pages)[i] = mem + (uint64_t)(npages - 1 - i) * RDMA_PAGE_SIZE;
    }
    *table = table_of(d, *pages, npages);
}

static QRdmaMr *mr_new(QRdmaPd *pd)
{
    QRdmaMr *mr = qrdma_own(pd->dev, sizeof(*mr));

    mr->pd = pd;
    return mr;
}

/* Check the keys that every new region has; @remote: peers may use it. */
static void mr_take_keys(QRdmaMr *mr, const struct virtio_rdma_mr_rsp *rsp,
                         bool remote)
{
    mr->mrn = le32_to_cpu(rsp->mrn);
    mr->lkey = le32_to_cpu(rsp->lkey);
    mr->rkey = le32_to_cpu(rsp->rkey);
    g_assert_cmpuint(mr->mrn, !=, 0);
    if (mr->pd->dev->features & QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS)) {
        return;
    }
    g_assert_cmphex(mr->lkey >> 8, ==, mr->mrn);
    if (remote) {
        g_assert_cmphex(mr->rkey >> 8, ==, mr->mrn);
    } else {
        g_assert_cmphex(mr->rkey, ==, 0);
    }
}

static QRdmaMr *mr_new_range(QRdmaPd *pd, uint64_t iova, uint64_t length)
{
    QRdmaMr *mr = mr_new(pd);

    mr->iova = iova;
    mr->length = length;
    mr->npages = pages_of(iova, length);
    return mr;
}

/* Register a region that has its pages and their table. */
static void mr_register(QRdmaMr *mr, uint32_t access)
{
    QRdma *d = mr->pd->dev;
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(mr->pd->pdn),
        .access = cpu_to_le32(access),
        .start = cpu_to_le64(mr->iova),
        .length = cpu_to_le64(mr->length),
        .virt_addr = cpu_to_le64(mr->iova),
        .pages = cpu_to_le64(qrdma_dma(d, mr->table)),
        .npages = cpu_to_le32(mr->npages),
    };
    struct virtio_rdma_mr_rsp rsp;

    assert_ok(qrdma_call(d, REG_USER_MR, &req, &rsp));
    mr_take_keys(mr, &rsp, access & (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH));
}

QRdmaMr *qrdma_reg_mr(QRdmaPd *pd, uint64_t iova, uint64_t length,
                      uint32_t access)
{
    QRdmaMr *mr = mr_new_range(pd, iova, length);

    qrdma_alloc_pages(pd->dev, mr->npages, &mr->pages, &mr->table);
    mr_register(mr, access);
    return mr;
}

uint8_t qrdma_reg_user_mr(QRdma *d,
                          const struct virtio_rdma_reg_user_mr_req *req,
                          struct virtio_rdma_mr_rsp *rsp)
{
    struct virtio_rdma_mr_rsp here;

    return qrdma_cmd(d, VIRTIO_RDMA_CMD_REG_USER_MR, req, sizeof(*req),
                     rsp ?: &here, sizeof(here));
}

QRdmaMr *qrdma_reg_mr_at(QRdmaPd *pd, uint64_t iova, uint64_t length,
                         uint32_t access, uint64_t addr)
{
    QRdmaMr *mr = mr_new_range(pd, iova, length);

    mr->pages = qrdma_own(pd->dev, mr->npages * sizeof(uint64_t));
    for (uint32_t i = 0; i < mr->npages; i++) {
        mr->pages[i] = addr + (uint64_t)i * RDMA_PAGE_SIZE;
    }
    mr->table = table_of(pd->dev, mr->pages, mr->npages);
    mr_register(mr, access);
    return mr;
}

QRdmaMr *qrdma_get_dma_mr(QRdmaPd *pd, uint32_t access)
{
    QRdmaMr *mr = mr_new(pd);
    struct virtio_rdma_get_dma_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn), .access = cpu_to_le32(access),
    };
    struct virtio_rdma_mr_rsp rsp;

    assert_ok(qrdma_call(pd->dev, GET_DMA_MR, &req, &rsp));
    mr_take_keys(mr, &rsp, false);
    return mr;
}

QRdmaMr *qrdma_alloc_mr(QRdmaPd *pd, uint32_t access, uint32_t max_num_sg)
{
    QRdmaMr *mr = mr_new(pd);
    struct virtio_rdma_create_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(access),
        .max_num_sg = cpu_to_le32(max_num_sg),
    };
    struct virtio_rdma_mr_rsp rsp;

    assert_ok(qrdma_call(pd->dev, CREATE_MR, &req, &rsp));
    /* REG_MR decides which rights the region has */
    mr_take_keys(mr, &rsp, true);
    return mr;
}

uint8_t qrdma_map_mr_sg(QRdmaMr *mr, uint64_t iova, uint64_t length)
{
    QRdma *d = mr->pd->dev;
    struct virtio_rdma_map_mr_sg_req req;
    struct virtio_rdma_map_mr_sg_rsp rsp;
    uint8_t status;

    mr->iova = iova;
    mr->length = length;
    mr->npages = pages_of(iova, length);
    qrdma_alloc_pages(d, mr->npages, &mr->pages, &mr->table);
    req = (struct virtio_rdma_map_mr_sg_req) {
        .mrn = cpu_to_le32(mr->mrn),
        .npages = cpu_to_le32(mr->npages),
        .start = cpu_to_le64(iova),
        .length = cpu_to_le64(length),
        .pages = cpu_to_le64(qrdma_dma(d, mr->table)),
    };
    status = qrdma_call(d, MAP_MR_SG, &req, &rsp);
    if (status == VIRTIO_RDMA_S_OK) {
        g_assert_cmpuint(le32_to_cpu(rsp.npages), ==, mr->npages);
    }
    return status;
}

uint8_t qrdma_dereg_mr(QRdmaMr *mr)
{
    return qrdma_destroy(mr->pd->dev, VIRTIO_RDMA_CMD_DEREG_MR, mr->mrn);
}

static void mr_access(QRdmaMr *mr, uint64_t offset, void *data, size_t size,
                      bool write)
{
    QRdma *d = mr->pd->dev;
    uint8_t *at = data;

    g_assert_cmpuint(offset, <=, mr->length);
    g_assert_cmpuint(size, <=, mr->length - offset);
    while (size) {
        uint64_t pos = mr->iova % RDMA_PAGE_SIZE + offset;
        uint64_t in_page = pos % RDMA_PAGE_SIZE;
        uint64_t addr = mr->pages[pos / RDMA_PAGE_SIZE] + in_page;
        size_t part = MIN(size, RDMA_PAGE_SIZE - in_page);

        if (write) {
            qrdma_write(d, addr, at, part);
        } else {
            qrdma_read(d, addr, at, part);
        }
        offset += part;
        at += part;
        size -= part;
    }
}

void qrdma_mr_write(QRdmaMr *mr, uint64_t offset, const void *data,
                    size_t size)
{
    mr_access(mr, offset, (void *)data, size, true);
}

void qrdma_mr_read(QRdmaMr *mr, uint64_t offset, void *data, size_t size)
{
    mr_access(mr, offset, data, size, false);
}

static uint8_t *make_pattern(size_t size, uint8_t seed)
{
    uint8_t *data = g_malloc(size + 1);

    for (size_t i = 0; i < size; i++) {
        data[i] = seed + i * 7 + (i >> 8) * 13 + (i >> 16);
    }
    return data;
}

void qrdma_mr_fill(QRdmaMr *mr, uint64_t offset, size_t size, uint8_t seed)
{
    g_autofree uint8_t *data = make_pattern(size, seed);

    qrdma_mr_write(mr, offset, data, size);
}

void qrdma_mr_check(QRdmaMr *mr, uint64_t offset, size_t size, uint8_t seed)
{
    g_autofree uint8_t *want = make_pattern(size, seed);
    g_autofree uint8_t *got = g_malloc(size + 1);

    qrdma_mr_read(mr, offset, got, size);
    for (size_t i = 0; i < size; i++) {
        if (got[i] != want[i]) {
            g_error("byte %zu of %zu is %02x, not %02x", i, size, got[i],
                    want[i]);
        }
    }
}

RdmaSge qrdma_sge(QRdmaMr *mr, uint64_t offset, uint32_t length)
{
    return (RdmaSge) {
        .addr = mr->iova + offset, .length = length, .lkey = mr->lkey,
    };
}
