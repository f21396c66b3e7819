/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dma_buffers: a region of a DMA buffer that udmabuf makes of a memfd. A queue
 * pair, its own peer, writes to it and from it; what the memory has shows where
 * in the buffer that was.
 *
 *   dma_buffers DEVICE GID_INDEX
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "self_qp.h"

#define SIZE    (1u << 20)
#define OFFSET  (3 * 4096u + 64)
#define LENGTH  (SIZE - 2 * OFFSET)
/* Peers name the region by any number, so do not use the process's address. */
#define IOVA    (0x7000000000ull + OFFSET)

struct buffer {
    int fd;
    unsigned char *memory;
};

static struct buffer make_buffer(void)
{
    struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC,
                                     .size = SIZE };
    struct buffer buffer;
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    int memfd = memfd_create("dma_buffers", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    if (device < 0) {
        fail("/dev/udmabuf: %s", strerror(errno));
    }
    if (memfd < 0 || ftruncate(memfd, SIZE) ||
        fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        fail("no memfd: %s", strerror(errno));
    }
    create.memfd = memfd;
    buffer.fd = ioctl(device, UDMABUF_CREATE, &create);
    buffer.memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
                         0);
    if (buffer.fd < 0 || buffer.memory == MAP_FAILED) {
        fail("no DMA buffer: %s", strerror(errno));
    }
    close(memfd);
    close(device);
    return buffer;
}

static void write_to(struct ibv_qp *qp, const struct ibv_mr *to,
                     uint64_t to_address, const struct ibv_mr *from,
                     uint64_t from_address)
{
    struct ibv_sge sge = { from_address, LENGTH, from->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = to_address, .rkey = to->rkey },
    };
    int ret = ibv_post_send(qp, &wr, &bad);

    if (ret) {
        fail("ibv_post_send: %s", strerror(ret));
    }
    self_wait(qp->send_cq, 1);
}

/* The region is only this part of the buffer. */
static void check_written(const unsigned char *memory, unsigned char value)
{
    for (unsigned i = 0; i < SIZE; i++) {
        unsigned char want = i >= OFFSET && i < OFFSET + LENGTH ? value : 0;

        if (memory[i] != want) {
            fail("byte %u is 0x%x, not 0x%x", i, memory[i], want);
        }
    }
}

static void refuse(struct ibv_pd *pd, uint64_t offset, size_t length, int fd,
                   const char *what)
{
    if (ibv_reg_dmabuf_mr(pd, offset, length, offset, fd, SELF_ACCESS)) {
        fail("a region %s was registered", what);
    }
}

int main(int argc, char **argv)
{
    struct buffer buffer;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr, *own;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };
    static unsigned char memory[LENGTH];

    if (argc != 3) {
        fail("usage: dma_buffers DEVICE GID_INDEX");
    }
    context = self_open(argv[1], atoi(argv[2]));
    buffer = make_buffer();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 2, NULL, NULL, 0);
    init.send_cq = init.recv_cq = cq;
    qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    own = qp ? ibv_reg_mr(pd, memory, LENGTH, SELF_ACCESS) : NULL;
    if (!own) {
        fail("no queue pair, or no region: %s", strerror(errno));
    }
    self_connect(qp);

    refuse(pd, OFFSET, SIZE, buffer.fd, "that ends behind its buffer");
    refuse(pd, 0, 4096, 0, "of memory that is not a DMA buffer");
    mr = ibv_reg_dmabuf_mr(pd, OFFSET, LENGTH, IOVA, buffer.fd, SELF_ACCESS);
    if (!mr) {
        fail("ibv_reg_dmabuf_mr: %s", strerror(errno));
    }
    /* The region holds a reference to the buffer. */
    close(buffer.fd);

    memset(memory, 0x5a, LENGTH);
    write_to(qp, mr, IOVA, own, (uintptr_t)memory);
    check_written(buffer.memory, 0x5a);
    memset(buffer.memory + OFFSET, 0xc3, LENGTH);
    write_to(qp, own, (uintptr_t)memory, mr, IOVA);
    for (unsigned i = 0; i < LENGTH; i++) {
        if (memory[i] != 0xc3) {
            fail("byte %u that was sent is 0x%x", i, memory[i]);
        }
    }
    if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_dereg_mr(own) ||
        ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context)) {
        fail("something is still in use");
    }
    return 0;
}
