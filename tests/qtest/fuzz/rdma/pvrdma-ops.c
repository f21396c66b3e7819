/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer of pvrdma: steps of the input, by a driver and processes that are bad.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "io/channel-buffer.h"
#include "migration/qemu-file.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "system/runstate.h"
#include "pvrdma.h"

#define STREAM_ROOM 65536

/* Any address that means something to the device */
static uint64_t pick_addr(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    switch (sel & 7) {
    case 0:
        return FUZZ_PV_DIR(sel % FUZZ_PV_DIR_COUNT);
    case 1:
        return FUZZ_PV_STATE(sel % FUZZ_PV_DIR_COUNT) + in_u8(in);
    case 2:
        return FUZZ_PV_REGS + in_u8(in) % 64;
    case 3:
        return FUZZ_PV_UAR + in_u16(in);
    case 4:
        return fuzz_pick_va(in);
    case 5:
        return fuzz_config_addr(FUZZ_PV_DEVFN, in_u8(in));
    case 6:
        return in_u64(in);
    default:
        return FUZZ_PV_DSR + in_u32(in) % 0xf000;
    }
}

/* Most counts are small, and powers of two. */
static uint32_t pick_count(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0xc0 ? 1u << sel % 8 : sel < 0xf0 ? sel : in_u32(in);
}

static uint32_t pick_handle(FuzzIn *in, uint32_t usual)
{
    uint8_t sel = in_u8(in);

    return sel < 0xc0 ? usual : sel < 0xf8 ? sel % 16 : in_u32(in);
}

static uint64_t pick_dir(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0xe0 ? fuzz_pv_dir(FUZZ_PV_ANY_DIR, 4) : pick_addr(in);
}

static uint32_t pick_pd(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return pick_handle(in, fuzz_pv.pd[sel < 0xc0]);
}

/* Commands with fields that are mostly valid; the room is that of any. */

static void op_create(FuzzIn *in)
{
    PvrdmaCmdCreateCq cq = {
        .dir = pick_dir(in), .ctx = pick_handle(in, FUZZ_PV_CTX),
        .cqe = pick_count(in), .nchunks = pick_count(in),
    };
    PvrdmaRspCreateCq rsp;

    fuzz_pv_command(PVRDMA_CMD_CREATE_CQ, &cq, sizeof(cq), &rsp, sizeof(rsp));
}

static void op_create_srq(FuzzIn *in)
{
    PvrdmaCmdCreateSrq req = {
        .dir = pick_dir(in), .pd = pick_pd(in), .nchunks = pick_count(in),
        .max_wr = pick_count(in), .max_sge = pick_count(in),
        .limit = in_u8(in) % 8,
    };

    fuzz_pv_command(PVRDMA_CMD_CREATE_SRQ, &req, sizeof(req), NULL, 0);
}

static void op_create_qp(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    PvrdmaCmdCreateQp req = {
        .dir = pick_dir(in), .pd = pick_pd(in),
        .send_cq = pick_handle(in, fuzz_pv.cq),
        .recv_cq = pick_handle(in, fuzz_pv.cq),
        .srq = pick_handle(in, fuzz_pv.srq),
        .max_send_wr = pick_count(in), .max_recv_wr = pick_count(in),
        .max_send_sge = pick_count(in), .max_recv_sge = pick_count(in),
        .total_chunks = pick_count(in), .send_chunks = pick_count(in),
        .qp_type = sel & 1 ? RDMA_QPT_RC : sel >> 1 & 7,
        .is_srq = sel >> 4 & 1, .sq_sig_all = sel >> 5 & 1,
    };
    PvrdmaRspCreateQp rsp;

    fuzz_pv_command(PVRDMA_CMD_CREATE_QP, &req, sizeof(req), &rsp,
                    sizeof(rsp));
    if (sel & 0x40) {
        fuzz_guest.qpn[FUZZ_QP_UC_FAR] = rsp.qpn;
    }
}

static void op_create_mr(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint32_t pages = pick_count(in);
    PvrdmaCmdCreateMr req = {
        .start = sel & 8 ? in_u64(in) : FUZZ_IOVA,
        .length = sel & 16 ? in_u64(in) : pages * 4096ull,
        .dir = pick_dir(in), .pd = pick_pd(in),
        .access = fuzz_pick_access(in), .flags = sel & 3,
        .nchunks = sel & 32 ? pick_count(in) : pages,
    };
    PvrdmaRspCreateMr rsp;

    fuzz_pv_command(PVRDMA_CMD_CREATE_MR, &req, sizeof(req), &rsp,
                    sizeof(rsp));
    fuzz_guest.key[sel % FUZZ_KEYS] = rsp.rkey;
}

/* DESTROY_*, QUERY_*, CREATE_PD: those that have but a handle */
static void op_handle(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    PvrdmaCmdModifyQp req = { .mask = in_u8(in) };

    req.handle = pick_handle(in, sel & 0x80 ? fuzz_guest.qpn[sel % FUZZ_QPS]
                                            : sel % 8);
    fuzz_pv_command(in_u8(in) % PVRDMA_NUM_CMDS, &req, sizeof(req), NULL, 0);
}

static void op_modify(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    fuzz_pv_modify(sel % FUZZ_QPS, in_u8(in) % (RDMA_QPS_ERR + 1));
}

/* All states up to RTS: the indices begin again */
static void op_connect(FuzzIn *in)
{
    unsigned place = in_u8(in) % FUZZ_QPS;

    fuzz_pv_modify(place, RDMA_QPS_RESET);
    fuzz_store(FUZZ_PV_STATE(place), 0, 8);
    fuzz_store(FUZZ_PV_STATE(place) + 8, 0, 8);
    fuzz_pv.tail[place][0] = fuzz_pv.tail[place][1] = 0;
    for (RdmaQpState state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
        fuzz_pv_modify(place, state);
    }
}

static void op_raw_command(FuzzIn *in)
{
    uint8_t req[PVRDMA_CMD_ROOM] = {};
    uint32_t cmd = in_u8(in) % (PVRDMA_NUM_CMDS + 2);

    for (size_t i = sizeof(PvrdmaCmdHead); in->left && i < sizeof(req); i++) {
        req[i] = in_u8(in);
    }
    fuzz_pv_command(cmd, req, sizeof(req), NULL, 0);
}

/* A request without an answer: the next one comes at once. */
static void op_request(FuzzIn *in)
{
    fuzz_store(FUZZ_PV_REQUEST + 8, in_u8(in) % PVRDMA_NUM_CMDS, 4);
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_REQUEST, 0, 4);
}

/* Work requests */

static PvrdmaSge pick_sge(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return (PvrdmaSge) {
        .addr = fuzz_pick_va(in),
        .length = sel & 1 ? in_u32(in) : 8 << (sel >> 4),
        .lkey = fuzz_pick_key(in),
    };
}

static void op_send(FuzzIn *in)
{
    uint8_t sel = in_u8(in), op = in_u8(in);
    unsigned place = sel % FUZZ_QPS;
    PvrdmaSge sge = pick_sge(in);
    PvrdmaSendWqe wqe = {
        .wr_id = op,
        .num_sge = sel & 0x80 ? in_u32(in) : sel >> 4 & 1,
        .opcode = op < 0xf0 ? op % 16 : in_u32(in),
        .send_flags = in_u8(in),
        .ex.invalidate_rkey = fuzz_pick_key(in),
        .wr.rdma = {
            .remote_addr = fuzz_pick_va(in), .rkey = fuzz_pick_key(in),
        },
    };

    if (place == FUZZ_QP_UD) {
        wqe.wr.ud.remote_qpn = FUZZ_FAR_QPN;
        wqe.wr.ud.remote_qkey = FUZZ_QKEY;
        wqe.wr.ud.av = (PvrdmaAv) {
            .port_pd = 1u << 24, .hop_limit = 64, .gid_index = sel >> 5 & 3,
        };
        memcpy(wqe.wr.ud.av.dgid, fuzz_guest.far_gid[sel >> 5 & 1],
               RDMA_GID_LEN);
        memcpy(wqe.wr.ud.av.dmac, fuzz_guest.far_mac, RDMA_MAC_LEN);
    } else if (wqe.opcode == PVRDMA_WR_FAST_REG) {
        wqe.wr.fast_reg.dir = fuzz_pv_dir(FUZZ_PV_LIST_DIR, 4);
        wqe.wr.fast_reg.page_shift = 12;
        wqe.wr.fast_reg.npages = pick_count(in);
        wqe.wr.fast_reg.length = in_u32(in);
        wqe.wr.fast_reg.access = fuzz_pick_access(in);
        wqe.wr.fast_reg.key = fuzz_pick_key(in);
    } else if (wqe.opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
               wqe.opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wqe.wr.atomic.rkey = fuzz_guest.all;
    }
    fuzz_pv_post_send(place, &wqe, &sge);
}

static void op_recv(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    PvrdmaSge sge = pick_sge(in);

    fuzz_pv_post_recv(sel % FUZZ_QPS, &(PvrdmaRecvWqe) {
        .wr_id = sel, .num_sge = sel & 0x80 ? in_u32(in) : 1,
    }, &sge);
}

static void op_srq_recv(FuzzIn *in)
{
    uint64_t state = FUZZ_PV_STATE(FUZZ_PV_SRQ_DIR);
    uint64_t at = state + 0x1000 + fuzz_pv.srq_tail % FUZZ_PV_WRS *
                                   FUZZ_PV_RQ_STRIDE;
    PvrdmaSge sge = pick_sge(in);

    fuzz_store(at + offsetof(PvrdmaRecvWqe, num_sge), 1, 4);
    fuzz_write(at + sizeof(PvrdmaRecvWqe), &sge, sizeof(sge));
    fuzz_pv.srq_tail = (fuzz_pv.srq_tail + 1) % (2 * FUZZ_PV_WRS);
    fuzz_store(state + offsetof(PvrdmaStatePage, rx), fuzz_pv.srq_tail, 4);
    fuzz_pv_doorbell(FUZZ_PV_CTX, PVRDMA_UAR_SRQ,
                     fuzz_pv.srq | PVRDMA_UAR_SRQ_RECV);
}

/* An index of any ring, of the guest or of the device, gets any value. */
static void op_index(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint64_t state = sel & 0x80 ? FUZZ_PV_STATE(sel % FUZZ_PV_DIR_COUNT)
                                : (sel & 1 ? FUZZ_PV_EVENTS : FUZZ_PV_CQNS) +
                                  0x2000;

    fuzz_store(state + in_u8(in) % 4 * 4,
               sel & 0x40 ? in_u32(in) : in_u8(in) % (2 * FUZZ_PV_WRS), 4);
    fuzz_settle();
}

/* The driver has consumed all of the CQ. */
static void op_consume(FuzzIn *in)
{
    uint64_t rx = FUZZ_PV_STATE(FUZZ_PV_CQ_DIR) + offsetof(PvrdmaStatePage, rx);

    fuzz_store(rx + offsetof(PvrdmaRingState, head), fuzz_load(rx, 4), 4);
}

static void op_doorbell(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint32_t handle = sel & 0x80 ? in_u32(in) : fuzz_guest.qpn[sel % FUZZ_QPS];

    fuzz_pv_doorbell(sel & 0x40 ? in_u8(in) % FUZZ_PV_PAGES : FUZZ_PV_CTX,
                     in_u8(in) % 4 * 4, handle | (uint32_t)in_u8(in) << 24);
}

/* Registers, configuration space, and memory */

static void op_register(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint64_t addr = FUZZ_PV_REGS + in_u8(in) % 48;
    unsigned size = 1u << (sel & 0x80 ? sel % 4 : 2);

    if (sel & 0x40) {
        fuzz_load(addr, size);
    } else {
        fuzz_store(addr, sel & 0x20 ? in_u64(in) : in_u8(in) % 4, size);
    }
    fuzz_settle();
}

static void op_pci(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    fuzz_store(fuzz_config_addr(FUZZ_PV_DEVFN, sel & 0x80 ? in_u8(in)
                                                          : PCI_COMMAND),
               in_u32(in), 1 + (sel & 1));
    fuzz_settle();
}

/* Messages of the device go anywhere, for example to its own registers. */
static void op_vector(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint64_t entry = FUZZ_PV_MSIX + sel % PVRDMA_NUM_VECTORS *
                                    PCI_MSIX_ENTRY_SIZE;
    uint64_t addr = pick_addr(in);

    fuzz_store(entry + PCI_MSIX_ENTRY_LOWER_ADDR, (uint32_t)addr, 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32, 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_DATA, in_u8(in), 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_VECTOR_CTRL, sel >> 7, 4);
    fuzz_pv_doorbell(FUZZ_PV_CTX, PVRDMA_UAR_CQ,
                     fuzz_pv.cq | PVRDMA_UAR_CQ_ARM);
}

static void op_memory(FuzzIn *in)
{
    uint64_t addr = pick_addr(in);

    for (uint8_t n = 1 + in_u8(in) % 16; n; n--) {
        fuzz_store(addr++, in_u8(in), 1);
    }
    fuzz_settle();
}

static void op_restart(FuzzIn *in)
{
    fuzz_pv_bring_up(false);
}

/* Migration */

static int load(DeviceState *dev, const VMStateDescription *vmsd,
                const uint8_t *data, size_t len)
{
    QIOChannelBuffer *buf = qio_channel_buffer_new(len);
    QEMUFile *f = qemu_file_new_input(QIO_CHANNEL(buf));
    int ret;

    memcpy(buf->data, data, len);
    buf->usage = len;
    ret = vmstate_load_state(f, vmsd, dev, vmsd->version_id);
    qemu_fclose(f);
    object_unref(OBJECT(buf));
    return ret;
}

static void op_migrate(FuzzIn *in)
{
    DeviceState *dev = DEVICE(object_resolve_path("/machine/peripheral/pv0",
                                                  NULL));
    const VMStateDescription *vmsd = qdev_get_vmsd(dev);
    QIOChannelBuffer *buf;
    unsigned tears = fuzz_guest.tears;
    QEMUFile *f;
    size_t len;
    int ret;

    fuzz_guest.tears = 0;
    vm_state_notify(false, RUN_STATE_FINISH_MIGRATE);
    buf = qio_channel_buffer_new(STREAM_ROOM);
    f = qemu_file_new_output(QIO_CHANNEL(buf));
    vmstate_save_state(f, vmsd, dev, NULL);
    qemu_fflush(f);
    len = buf->usage;
    for (uint8_t n = in_u8(in) % 8; n; n--) {
        buf->data[in_u32(in) % len] ^= in_u8(in);
    }
    device_cold_reset(dev);
    ret = load(dev, vmsd, buf->data, len);
    fuzz_drop_intx(PCI_DEVICE(dev));
    if (ret < 0) {
        /* A destination would end here. */
        device_cold_reset(dev);
    }
    qemu_fclose(f);
    object_unref(OBJECT(buf));
    vm_state_notify(true, RUN_STATE_RUNNING);
    fuzz_guest.tears = tears;
    fuzz_settle();
}

/* Corpora depend on the order: new operations go to places that repeat one. */
FuzzPvOp *fuzz_pv_op(uint8_t n)
{
    static FuzzPvOp *const ops[] = {
        op_create, op_create_srq, op_create_qp, op_create_mr,
        op_handle, op_modify, op_connect, op_raw_command,
        op_send, op_recv, op_srq_recv, op_index,
        op_consume, op_doorbell, op_register, op_pci,
        op_vector, op_memory, op_restart, op_migrate,
        fuzz_op_frame, fuzz_op_raw_frame, fuzz_op_tear, fuzz_op_time,
        fuzz_op_link, op_request, op_send, op_send,
        op_recv, op_doorbell, fuzz_op_frame, op_connect,
    };

    return ops[n % ARRAY_SIZE(ops)];
}
