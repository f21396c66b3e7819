/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the targets.
 *
 * After any input the machine can be reset, and then has a working device. The
 * end of each input checks that.
 */
#include "qemu/osdep.h"
#include "rdma-fuzz.h"

#define MAX_RECORDS 200
#define PROBE_ID 0x50524f42u
#define PROBE_TURNS 1000            /* of an iothread */

typedef struct FuzzOp {
    void (*run)(FuzzIn *in);
    const char *name;
} FuzzOp;

#define OP(name) { fuzz_op_##name, #name }

/* Corpora depend on the order: new operations go to free places at the end. */
static const FuzzOp all_ops[] = {
    OP(command), OP(send), OP(recv), OP(frame),
    OP(connect), OP(refill), OP(kick), OP(time),
    OP(ring), OP(register), OP(pci), OP(vector),
    OP(queue_reset), OP(restart), OP(flr), OP(memory),
    OP(tear), OP(link), OP(plug), OP(migrate),
    OP(mutate), OP(raw_command), OP(raw_frame), OP(iommu),
    OP(nested), OP(send), OP(send), OP(recv),
    OP(frame), OP(frame), OP(nested), OP(command),
};

/* The attacker is also a process with direct queues. Places are as above. */
static const FuzzOp direct_ops[] = {
    OP(command), OP(send), OP(recv), OP(frame),
    OP(connect), OP(refill), OP(kick), OP(time),
    OP(ring), OP(register), OP(pci), OP(vector),
    OP(queue_reset), OP(restart), OP(flr), OP(memory),
    OP(tear), OP(link), OP(plug), OP(migrate),
    OP(mutate), OP(raw_command), OP(raw_frame), OP(iommu),
    OP(nested), OP(send), OP(counter), OP(recv),
    OP(counter), OP(doorbell), OP(shadow), OP(cq),
};

/* Commands wait while the guest ejects the device. Places are as above. */
static const FuzzOp eject_ops[] = {
    OP(command), OP(send), OP(recv), OP(frame),
    OP(connect), OP(refill), OP(kick), OP(time),
    OP(deep), OP(register), OP(deep), OP(eject),
    OP(queue_reset), OP(restart), OP(flr), OP(memory),
    OP(deep), OP(link), OP(eject), OP(eject),
    OP(deep), OP(raw_command), OP(raw_frame), OP(deep),
    OP(nested), OP(send), OP(counter), OP(recv),
    OP(eject), OP(doorbell), OP(shadow), OP(cq),
};

/* The peer is the attacker; the guest is honest. */
static const FuzzOp wire_ops[] = {
    OP(frame), OP(frame), OP(frame), OP(raw_frame),
    OP(recv), OP(send), OP(refill), OP(time),
};

/* The other side of shared memory is the attacker. */
static const FuzzOp shm_ops[] = {
    OP(shm_connect), OP(shm_frame), OP(shm_record), OP(shm_store),
    OP(shm_fill), OP(shm_message), OP(shm_close), OP(shm_listen),
    OP(shm_accept), OP(shm_tail), OP(shm_scribble), OP(send),
    OP(recv), OP(refill), OP(time), OP(frame),
    OP(connect), OP(restart), OP(migrate), OP(link),
};

/* The attacker writes the stream, starting from a device under traffic. */
static const FuzzOp stream_ops[] = {
    OP(mutate), OP(migrate), OP(send), OP(recv),
    OP(frame), OP(time), OP(refill), OP(command),
};

typedef struct Target {
    FuzzConfig config;
    const FuzzOp *ops;
    unsigned n_ops;
} Target;

static const Target targets[] = {
    { { "rdma-split", "" }, all_ops, ARRAY_SIZE(all_ops) },
    { { "rdma-packed", ",packed=on" }, all_ops, ARRAY_SIZE(all_ops) },
    { { "rdma-iommu", ",iommu_platform=on,in_order=on", true }, all_ops,
      ARRAY_SIZE(all_ops) },
    { { "rdma-direct", "", .direct = true }, direct_ops,
      ARRAY_SIZE(direct_ops) },
    { { "rdma-eject", "", .direct = true, .iothread = true }, eject_ops,
      ARRAY_SIZE(eject_ops) },
    { { "rdma-demo", ",layout=demo", .demo = true }, all_ops,
      ARRAY_SIZE(all_ops) },
    { { "rdma-wire", "" }, wire_ops, ARRAY_SIZE(wire_ops) },
    { { "rdma-shm", "", .shm = true }, shm_ops, ARRAY_SIZE(shm_ops) },
    { { "rdma-stream", "" }, stream_ops, ARRAY_SIZE(stream_ops) },
};

/* Check that a new device works: its first completion is the expected one. */
static void renew(void)
{
    FuzzGuest *g = &fuzz_guest;
    uint64_t cqe;

    g->tears = 0;
    fuzz_shm_leave();
    fuzz_plug();
    fuzz_machine_reset();
    fuzz_bring_up(true);
    cqe = g->config->direct ? fuzz_direct_cqe(0)
                            : FUZZ_BUFFERS + VIRTIO_RDMA_CQ_VQ(g->cqn[0]) *
                                             FUZZ_RING_SIZE * FUZZ_BUF_SIZE;
    fuzz_send_messages(1, PROBE_ID);
    for (int i = 0; i < PROBE_TURNS && fuzz_load(cqe, 8) != PROBE_ID; i++) {
        fuzz_settle();
    }
    g_assert_cmphex(fuzz_load(cqe, 8), ==, PROBE_ID);
    g_assert_cmpint(fuzz_load(cqe + offsetof(struct virtio_rdma_cqe, status),
                              1), ==, RDMA_WC_SUCCESS);
}

static void fuzz_rdma(QTestState *s, const unsigned char *data, size_t size)
{
    const Target *target = container_of(fuzz_guest.config, Target, config);
    FuzzIn in = { data, size };
    bool verbose;

    verbose = getenv("FUZZ_VERBOSE");
    for (unsigned n = 0; in.left && n < MAX_RECORDS; n++) {
        const FuzzOp *op = &target->ops[in_u8(&in) % target->n_ops];

        fuzz_find_devices();
        if (!fuzz_guest.rdma.proxy) {
            break;
        }
        if (verbose) {
            fprintf(stderr, "fuzz: %s\n", op->name);
        }
        op->run(&in);
        fuzz_drain_wire();
    }
    /* Check at the end of this input, or the next input would get the blame */
    renew();
}

static void fuzz_rdma_prepare(QTestState *s)
{
    renew();
}

static void register_targets(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(targets); i++) {
        fuzz_add_target(&(FuzzTarget) {
            .name = targets[i].config.name,
            .description = "The virtio-rdma device",
            .get_init_cmdline = fuzz_cmdline,
            .pre_fuzz = fuzz_rdma_prepare,
            .fuzz = fuzz_rdma,
            .opaque = (void *)&targets[i],
        });
    }
}

fuzz_target_init(register_targets);
