/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the fuzzers of the virtio-rdma device: a guest inside QEMU's
 * own process, whose driver follows the input.
 *
 * Each input begins with a reset of the machine and a device that is up: a few
 * queue pairs of each type are connected, and have received their buffers. The
 * driver is bad: it ignores answers, and overwrites memory that is in use.
 */
#ifndef TESTS_FUZZ_RDMA_H
#define TESTS_FUZZ_RDMA_H

#include "hw/virtio/virtio-pci.h"
#include "tests/qtest/fuzz/fuzz.h"
#include "tests/qtest/libqos/virtio-rdma.h"

/* Guest memory: from here on to FUZZ_MEM_END all is zero at first. */
#define FUZZ_MEM        0x100000ull
#define FUZZ_RINGS      0x100000ull /* a page each */
#define FUZZ_BUFFERS    0x200000ull /* of what is in the rings */
#define FUZZ_TABLES     0x300000ull /* lists of pages */
#define FUZZ_QUEUES     0x380000ull /* direct ones, and their pages' lists */
#define FUZZ_DATA       0x400000ull /* regions that are registered */
#define FUZZ_MEM_END    0x500000ull
/* The same for the guest's addresses in regions. */
#define FUZZ_IOVA       0x10000ull
#define FUZZ_MR_SIZE    0x20000ull
#define FUZZ_PAGES      (FUZZ_MR_SIZE / 4096)

#define FUZZ_PDN        1
#define FUZZ_ACCESS_ALL (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                         RDMA_ACCESS_MW_BIND | RDMA_ACCESS_FLUSH_GLOBAL)

#define FUZZ_ECAM       0xb0000000ull
#define FUZZ_RDMA_BAR   0xe0000000ull
#define FUZZ_DOORBELLS  0xe0100000ull
#define FUZZ_BLK_BAR    0xe1000000ull
#define FUZZ_IOMMU_BAR  0xe2000000ull
/* Tables of MSI-X vectors: so much behind the other BAR */
#define FUZZ_MSIX       0x80000ull

#define FUZZ_PORT_DEVFN  (4 << 3)
#define FUZZ_BLK_DEVFN   (5 << 3)
#define FUZZ_IOMMU_DEVFN (6 << 3)
#define FUZZ_RDMA_DEVFN  (1 << 8)   /* bus 1, behind the port */

#define FUZZ_RING_SIZE  32
#define FUZZ_BUF_SIZE   512
#define FUZZ_MAX_VQS    32
#define FUZZ_QKEY       0x11111111u
#define FUZZ_FAR_QPN    0x77

/* Input, taken from the front; zeroes when it is used up. */
typedef struct FuzzIn {
    const uint8_t *p;
    size_t left;
} FuzzIn;

uint8_t in_u8(FuzzIn *in);
uint16_t in_u16(FuzzIn *in);
uint32_t in_u32(FuzzIn *in);
uint64_t in_u64(FuzzIn *in);

/* Machine and driver of a target */
typedef struct FuzzConfig {
    const char *name;
    const char *props;              /* of the device */
    bool iommu;                     /* all is behind a virtio-iommu */
    bool direct;                    /* QPs and CQs are direct */
    bool shm;                       /* the peer is on this host */
    bool iothread;                  /* it works in one; ACPI unplugs it */
    bool demo;                      /* its layout is that of the demo */
} FuzzConfig;

typedef struct FuzzRing {
    unsigned index;
    uint16_t size;
    uint16_t put;                   /* elements made available, all time */
    uint16_t next;                  /* position of the next descriptor */
    bool lap;                       /* packed: an odd one */
} FuzzRing;

/* A PCI function of virtio. */
typedef struct FuzzFunction {
    int devfn;
    uint64_t bar;
    VirtIOPCIProxy *proxy;
    VirtIODevice *vdev;
} FuzzFunction;

/* Queue pairs at the start of an input, by place */
enum {
    FUZZ_QP_A,                      /* these two talk to each other */
    FUZZ_QP_B,
    FUZZ_QP_RC_FAR,                 /* the peer is on the wire */
    FUZZ_QP_UC_FAR,
    FUZZ_QP_UD,
    FUZZ_QP_SRQ_FAR,                /* RC, has the SRQ */
    FUZZ_QPS
};

#define FUZZ_KEYS 64

typedef struct FuzzGuest {
    const FuzzConfig *config;
    FuzzFunction rdma, blk, iommu;
    FuzzRing ring[FUZZ_MAX_VQS];
    FuzzRing iommu_ring, blk_ring;
    uint32_t n_vqs, max_cq, max_qp, max_srq;
    uint64_t features;
    bool packed;
    uint32_t qpn[FUZZ_QPS];
    uint32_t posted[FUZZ_QPS][2];   /* to direct queues: sends, receives */
    uint32_t posted_srq;            /* to the direct SRQ */
    uint32_t cqn[2];
    uint32_t eqn;                   /* of direct CQs */
    uint32_t arms[2];               /* requests of direct CQs */
    uint32_t key[FUZZ_KEYS];        /* by the number of the region */
    uint32_t all;                   /* key of a region with all rights */
    uint8_t gid[2][RDMA_GID_LEN];
    uint8_t far_gid[2][RDMA_GID_LEN];
    uint8_t mac[RDMA_MAC_LEN];
    uint8_t far_mac[RDMA_MAC_LEN];
    int wire;                       /* the netdev's far end */
    /* The next PSN that a QP expects, of another device than virtio-rdma */
    uint32_t (*psn)(uint32_t qpn, bool response);
    uint8_t by_memory;              /* frames take a ring; 0: the wire */
    unsigned tears;                 /* reads that find other bytes each time */
    uint32_t tear_at;
    uint8_t tear_by;
} FuzzGuest;

extern FuzzGuest fuzz_guest;

/* guest.c: the machine, its devices and queues */
/* The command line of a machine with the netdev n0, and without devices */
GString *fuzz_machine(const FuzzConfig *config);
GString *fuzz_cmdline(FuzzTarget *t);
void fuzz_find_devices(void);
/* Plug in the device and the cable if an input has removed them. */
void fuzz_plug(void);
/* Reset the machine and do what its firmware does. */
void fuzz_machine_reset(void);
/*
 * Call after the state of @pci was loaded alone. The bus counts the lines that
 * are asserted, but does not learn of a line from the state of a device.
 */
void fuzz_drop_intx(PCIDevice *pci);
/* Let the main loop do all pending work. */
void fuzz_settle(void);
void fuzz_write(uint64_t addr, const void *data, size_t len);
void fuzz_read(uint64_t addr, void *data, size_t len);
/* A register of 1, 2, 4 or 8 bytes. */
void fuzz_store(uint64_t addr, uint64_t value, unsigned size);
uint64_t fuzz_load(uint64_t addr, unsigned size);
uint64_t fuzz_config_addr(int devfn, uint32_t offset);
/* Up to DRIVER_OK with the queues; false if FEATURES_OK did not stick. */
bool fuzz_start(FuzzFunction *f, uint64_t features);
void fuzz_ring_setup(FuzzFunction *f, FuzzRing *r);
void fuzz_ring_put(FuzzRing *r, const QRdmaDesc *desc, unsigned n);
void fuzz_notify(FuzzFunction *f, unsigned vq);
/* Notify, and settle. */
void fuzz_kick(FuzzFunction *f, unsigned vq);
/* Address of the buffer for the next element */
uint64_t fuzz_ring_buffer(const FuzzRing *r);
FuzzRing *fuzz_rq(unsigned place);

/* iommu.c: the guest's IOMMU */
void fuzz_iommu_attach(void);
void fuzz_op_iommu(FuzzIn *in);

/* command.c: control commands of the input */
/* Returns the status, 0xff if there was no answer. */
uint8_t fuzz_command(uint8_t cmd, const void *req, size_t len, void *rsp,
                     size_t rsp_len);
/* The same without a notification. */
void fuzz_put_command(uint8_t cmd, const void *req, size_t len);
void fuzz_put_any_command(FuzzIn *in);
RdmaAv fuzz_av_to(bool far, uint8_t gid_index);
/* Masks of attributes that a QP needs to enter a state, by state */
const uint32_t *fuzz_masks_of(unsigned place);
uint32_t fuzz_pick_key(FuzzIn *in);
uint64_t fuzz_pick_va(FuzzIn *in);
uint32_t fuzz_pick_access(FuzzIn *in);
struct virtio_rdma_reg_user_mr_req fuzz_pick_mr(FuzzIn *in);
void fuzz_op_command(FuzzIn *in);
void fuzz_op_raw_command(FuzzIn *in);

/* verbs.c: the device comes up; work requests of the input */
/* Bring up the device; @checked: assert that each step succeeds. */
void fuzz_bring_up(bool checked);
/* From FUZZ_QP_A to FUZZ_QP_B, with completions of both. */
void fuzz_send_messages(unsigned n, uint64_t wr_id);
void fuzz_op_connect(FuzzIn *in);
void fuzz_op_send(FuzzIn *in);
void fuzz_op_recv(FuzzIn *in);
void fuzz_op_refill(FuzzIn *in);

/* direct.c: direct queues, by the place of their QP */
void fuzz_direct_describe(unsigned place, bool has_srq,
                          struct virtio_rdma_create_qp_req *req);
void fuzz_direct_post(unsigned place, bool recv, const void *wqe, size_t len);
void fuzz_direct_ring(unsigned place);
void fuzz_op_counter(FuzzIn *in);
void fuzz_op_doorbell(FuzzIn *in);
/* CQ 0 or 1: address of its first CQE */
void fuzz_direct_describe_cq(unsigned place,
                             struct virtio_rdma_create_cq_req *req);
uint64_t fuzz_direct_cqe(unsigned place);
/* The next completion raises an event. */
void fuzz_direct_arm(unsigned place);
void fuzz_op_cq(FuzzIn *in);
void fuzz_op_shadow(FuzzIn *in);

/* An SRQ of 16 WQEs with 4 SGEs */
void fuzz_direct_describe_srq(struct virtio_rdma_create_srq_req *req);
void fuzz_direct_post_srq(const void *wqe, size_t len);
void fuzz_direct_ring_srq(void);

/* eject.c: the end of the device during commands */
void fuzz_op_deep(FuzzIn *in);
void fuzz_op_eject(FuzzIn *in);

/* ops.c: registers, configuration, memory, time */
void fuzz_op_ring(FuzzIn *in);
void fuzz_op_kick(FuzzIn *in);
void fuzz_op_register(FuzzIn *in);
void fuzz_op_pci(FuzzIn *in);
void fuzz_op_vector(FuzzIn *in);
void fuzz_op_nested(FuzzIn *in);
void fuzz_op_queue_reset(FuzzIn *in);
void fuzz_op_restart(FuzzIn *in);
void fuzz_op_flr(FuzzIn *in);
void fuzz_op_memory(FuzzIn *in);
void fuzz_op_tear(FuzzIn *in);
void fuzz_op_time(FuzzIn *in);
void fuzz_op_link(FuzzIn *in);
void fuzz_op_plug(FuzzIn *in);
/* These replace QEMU's, which serve its generic fuzzer (see meson.build). */
void __wrap_fuzz_dma_read_cb(size_t addr, size_t len, MemoryRegion *mr);
void __real_fuzz_dma_read_cb(size_t addr, size_t len, MemoryRegion *mr);

/* frame.c: frames that come over the wire */
void fuzz_op_frame(FuzzIn *in);
void fuzz_op_raw_frame(FuzzIn *in);
void fuzz_drain_wire(void);

/* socket.c: clients of a server in this process */
#define FUZZ_MAX_FDS 2
int fuzz_connect(const char *path);
/* Send @n descriptors with a message, and let the main loop handle it. */
void fuzz_send_message(int fd, const void *data, size_t len, const int *fds,
                       unsigned n);
/*
 * Read all replies, so that the server never waits for room. Copy the first to
 * @reply, if that is not NULL.
 */
void fuzz_drain(int fd, void *reply, size_t size);

/* shm.c: the other side of shared memory */
/* Make the directory for the sockets of ports. */
const char *fuzz_shm_dir(void);
/* End all connections. */
void fuzz_shm_leave(void);
/* False: the frame is for the wire. */
bool fuzz_shm_deliver(const uint8_t *frame, size_t len);
void fuzz_op_shm_connect(FuzzIn *in);
void fuzz_op_shm_frame(FuzzIn *in);
void fuzz_op_shm_fill(FuzzIn *in);
void fuzz_op_shm_record(FuzzIn *in);
void fuzz_op_shm_store(FuzzIn *in);
void fuzz_op_shm_message(FuzzIn *in);
void fuzz_op_shm_close(FuzzIn *in);
void fuzz_op_shm_listen(FuzzIn *in);
void fuzz_op_shm_accept(FuzzIn *in);
void fuzz_op_shm_tail(FuzzIn *in);
void fuzz_op_shm_scribble(FuzzIn *in);

/* stream.c: migration */
void fuzz_op_migrate(FuzzIn *in);
void fuzz_op_mutate(FuzzIn *in);

#endif /* TESTS_FUZZ_RDMA_H */
