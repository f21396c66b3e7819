/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer of pvrdma: the machine and the driver. As with virtio-rdma, each input
 * begins with a device that is up, and ends with the check that it can be.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-net.h"
#include "pvrdma.h"

#define DEVICE "pvrdma,id=pv0,netdev=n0,mac=52:54:00:12:34:01,addr=7.1," \
               "max-qp=16,max-cq=8,max-mr=24,max-pd=8,max-srq=4,max-uar=8," \
               "gid-table-len=4"
#define MAX_RECORDS 200
#define PROBE_ID 0x50524f42u
#define PROBE_TURNS 100
#define RING_PAGES 4

FuzzPv fuzz_pv;

static const FuzzConfig config = { .name = "rdma-pvrdma" };

static GString *cmdline(FuzzTarget *t)
{
    GString *s = fuzz_machine(&config);

    g_string_append(s, " -device " DEVICE);
    return s;
}

/* Write a directory at @dir, whose pages begin at @pages. */
static void write_dir(uint64_t dir, uint64_t pages, unsigned npages)
{
    fuzz_store(dir, dir + 0x1000, 8);
    for (unsigned i = 0; i < npages; i++) {
        fuzz_store(dir + 0x1000 + 8 * i, pages + 0x1000ull * i, 8);
    }
}

uint64_t fuzz_pv_dir(unsigned n, unsigned npages)
{
    uint64_t dir = FUZZ_PV_DIR(n);

    write_dir(dir, dir + 0x2000, npages);
    return dir;
}

/* A ring of the device, whose directory is at @dir */
static PvrdmaRingDir device_ring(uint64_t dir)
{
    write_dir(dir, dir + 0x2000, RING_PAGES);
    return (PvrdmaRingDir) { .num_pages = RING_PAGES, .dir = dir };
}

void fuzz_pv_doorbell(unsigned page, uint32_t offset, uint32_t value)
{
    fuzz_store(FUZZ_PV_UAR + page * 0x1000ull + offset, value, 4);
    fuzz_settle();
}

uint32_t fuzz_pv_command(uint32_t cmd, void *req, size_t len, void *rsp,
                         size_t rsp_len)
{
    PvrdmaCmdHead *head = req;
    uint8_t zeroes[PVRDMA_RSP_ROOM] = {};
    uint32_t err;

    head->cmd = cmd;
    fuzz_write(FUZZ_PV_REQUEST, req, len);
    fuzz_write(FUZZ_PV_REPLY, zeroes, sizeof(zeroes));
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_REQUEST, 0, 4);
    err = fuzz_load(FUZZ_PV_REGS + PVRDMA_REG_ERR, 4);
    fuzz_settle();
    if (rsp_len) {
        fuzz_read(FUZZ_PV_REPLY, rsp, rsp_len);
    }
    return err;
}

static void check(bool checked, uint32_t err)
{
    if (checked) {
        g_assert_cmpint(err, ==, 0);
    }
}

static void set_names(void)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };
    FuzzGuest *g = &fuzz_guest;

    g->psn = fuzz_pv_psn;
    memcpy(g->mac, mac, sizeof(mac));
    memcpy(g->far_mac, mac, sizeof(mac));
    g->far_mac[RDMA_MAC_LEN - 1] = 2;
    memset(g->gid, 0, sizeof(g->gid));
    g->gid[0][0] = 0xfe;
    g->gid[0][1] = 0x80;
    g->gid[1][10] = g->gid[1][11] = 0xff;
    g->gid[1][12] = 10;
    memcpy(g->far_gid, g->gid, sizeof(g->gid));
    for (int i = 0; i < 2; i++) {
        g->gid[i][RDMA_GID_LEN - 1] = 1;
        g->far_gid[i][RDMA_GID_LEN - 1] = 2;
    }
}

static void bring_up_function(void)
{
    uint64_t cfg = fuzz_config_addr(FUZZ_PV_DEVFN, 0);
    PvrdmaDsr dsr = {
        .driver_version = PVRDMA_VERSION_HANDLES,
        .request = FUZZ_PV_REQUEST,
        .response = FUZZ_PV_REPLY,
        .events = device_ring(FUZZ_PV_EVENTS),
        .completions = device_ring(FUZZ_PV_CQNS),
    };

    fuzz_store(cfg + PCI_BASE_ADDRESS_0, FUZZ_PV_MSIX, 4);
    fuzz_store(cfg + PCI_BASE_ADDRESS_1, FUZZ_PV_REGS, 4);
    fuzz_store(cfg + PCI_BASE_ADDRESS_2, FUZZ_PV_UAR, 4);
    fuzz_store(cfg + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    fuzz_write(FUZZ_PV_DSR, &dsr, sizeof(dsr));
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_DSR_LOW, FUZZ_PV_DSR, 4);
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_DSR_HIGH, 0, 4);
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_IMR, 0, 4);
    fuzz_store(FUZZ_PV_REGS + PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE, 4);
}

static uint32_t create_pd(uint32_t ctx, bool checked)
{
    PvrdmaCmdHandle req = { .handle = ctx };
    PvrdmaRspHandle rsp;

    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_PD, &req, sizeof(req),
                                   &rsp, sizeof(rsp)));
    return rsp.handle;
}

static void create_mr(bool checked)
{
    PvrdmaCmdCreateMr req = {
        .start = FUZZ_IOVA,
        .length = FUZZ_MR_SIZE,
        .dir = FUZZ_PV_DIR(FUZZ_PV_MR_DIR),
        .pd = fuzz_pv.pd[1],
        .access = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE,
        .nchunks = FUZZ_PAGES,
    };
    PvrdmaRspCreateMr rsp;

    write_dir(req.dir, FUZZ_DATA, FUZZ_PAGES);
    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_MR, &req, sizeof(req),
                                   &rsp, sizeof(rsp)));
    fuzz_guest.all = rsp.rkey;
}

static void create_queues(bool checked)
{
    PvrdmaCmdCreateCq cq = {
        .dir = fuzz_pv_dir(FUZZ_PV_CQ_DIR, 2), .ctx = FUZZ_PV_CTX,
        .cqe = 64, .nchunks = 2,
    };
    PvrdmaCmdCreateSrq srq = {
        .dir = fuzz_pv_dir(FUZZ_PV_SRQ_DIR, 2), .pd = fuzz_pv.pd[1],
        .nchunks = 2, .max_wr = FUZZ_PV_WRS, .max_sge = FUZZ_PV_SGES,
    };
    PvrdmaRspCreateCq rsp;
    PvrdmaRspHandle handle;

    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_CQ, &cq, sizeof(cq), &rsp,
                                   sizeof(rsp)));
    fuzz_pv.cq = rsp.handle;
    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_SRQ, &srq, sizeof(srq),
                                   &handle, sizeof(handle)));
    fuzz_pv.srq = handle.handle;
    fuzz_pv.srq_tail = 0;
}

static void create_qp(unsigned place, bool checked)
{
    bool has_srq = place == FUZZ_QP_SRQ_FAR;
    PvrdmaCmdCreateQp req = {
        .dir = fuzz_pv_dir(place, 3),
        .pd = fuzz_pv.pd[1],
        .send_cq = fuzz_pv.cq,
        .recv_cq = fuzz_pv.cq,
        .srq = has_srq ? fuzz_pv.srq : 0,
        .max_send_wr = FUZZ_PV_WRS,
        .max_recv_wr = has_srq ? 0 : FUZZ_PV_WRS,
        .max_send_sge = FUZZ_PV_SGES,
        .max_recv_sge = has_srq ? 0 : FUZZ_PV_SGES,
        .total_chunks = 3,
        .send_chunks = 1,
        .qp_type = place == FUZZ_QP_UD ? RDMA_QPT_UD : RDMA_QPT_RC,
        .is_srq = has_srq,
    };
    PvrdmaRspCreateQp rsp;

    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_QP, &req, sizeof(req),
                                   &rsp, sizeof(rsp)));
    fuzz_guest.qpn[place] = rsp.qpn;
    fuzz_pv.tail[place][0] = fuzz_pv.tail[place][1] = 0;
}

/* Masks of attributes that a QP needs to enter a state, for RC and for UD */
static const uint32_t masks[][2] = {
    [RDMA_QPS_RESET] = { RDMA_QP_STATE, RDMA_QP_STATE },
    [RDMA_QPS_INIT] = {
        RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
        RDMA_QP_ACCESS_FLAGS,
        RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY,
    },
    [RDMA_QPS_RTR] = {
        RDMA_QP_STATE | RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
        RDMA_QP_RQ_PSN | RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER,
        RDMA_QP_STATE,
    },
    [RDMA_QPS_RTS] = {
        RDMA_QP_STATE | RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT |
        RDMA_QP_RNR_RETRY | RDMA_QP_SQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC,
        RDMA_QP_STATE | RDMA_QP_SQ_PSN,
    },
    [RDMA_QPS_SQD] = { RDMA_QP_STATE, RDMA_QP_STATE },
    [RDMA_QPS_SQE] = { RDMA_QP_STATE, RDMA_QP_STATE },
    [RDMA_QPS_ERR] = { RDMA_QP_STATE, RDMA_QP_STATE },
};

bool fuzz_pv_modify(unsigned place, RdmaQpState state)
{
    FuzzGuest *g = &fuzz_guest;
    bool near = place == FUZZ_QP_A || place == FUZZ_QP_B;
    unsigned ipv4 = near || (place & 1);
    PvrdmaCmdModifyQp req = {
        .handle = g->qpn[place],
        .mask = masks[state][place == FUZZ_QP_UD],
        .attr = {
            .qp_state = state,
            .path_mtu = RDMA_MTU_1024,
            .qkey = FUZZ_QKEY,
            .dest_qp_num = place == FUZZ_QP_A ? g->qpn[FUZZ_QP_B] :
                           place == FUZZ_QP_B ? g->qpn[FUZZ_QP_A] :
                                                FUZZ_FAR_QPN,
            .access = RDMA_ACCESS_REMOTE,
            .max_rd_atomic = 4,
            .max_dest_rd_atomic = 4,
            .port_num = 1,
            .timeout = 8,
            .retry_cnt = 7,
            .rnr_retry = 7,
            .ah = {
                .sgid_index = ipv4, .hop_limit = 64, .ah_flags = 1,
                .port_num = 1,
            },
        },
    };
    PvrdmaRspHead rsp;

    memcpy(req.attr.ah.dgid, near ? g->gid[ipv4] : g->far_gid[ipv4],
           RDMA_GID_LEN);
    memcpy(req.attr.ah.dmac, near ? g->mac : g->far_mac, RDMA_MAC_LEN);
    return !fuzz_pv_command(PVRDMA_CMD_MODIFY_QP, &req, sizeof(req), &rsp,
                            sizeof(rsp)) && !rsp.err;
}

/* Address of the next element of a ring, whose tail moves on */
static uint64_t next_element(unsigned place, bool recv, uint32_t stride)
{
    uint32_t *tail = &fuzz_pv.tail[place][recv];
    uint64_t at = FUZZ_PV_STATE(place) + (recv ? 0x2000 : 0x1000) +
                  *tail % FUZZ_PV_WRS * stride;

    *tail = (*tail + 1) % (2 * FUZZ_PV_WRS);
    return at;
}

static void publish(unsigned place, bool recv)
{
    fuzz_store(FUZZ_PV_STATE(place) + (recv ? offsetof(PvrdmaStatePage, rx)
                                            : offsetof(PvrdmaStatePage, tx)),
               fuzz_pv.tail[place][recv], 4);
    fuzz_pv_doorbell(FUZZ_PV_CTX, PVRDMA_UAR_QP, fuzz_guest.qpn[place] |
                     (recv ? PVRDMA_UAR_QP_RECV : PVRDMA_UAR_QP_SEND));
}

void fuzz_pv_post_send(unsigned place, const PvrdmaSendWqe *wqe,
                       const PvrdmaSge *sge)
{
    uint64_t at = next_element(place, false, FUZZ_PV_SQ_STRIDE);

    fuzz_write(at, wqe, sizeof(*wqe));
    fuzz_write(at + sizeof(*wqe), sge, sizeof(*sge));
    publish(place, false);
}

void fuzz_pv_post_recv(unsigned place, const PvrdmaRecvWqe *wqe,
                       const PvrdmaSge *sge)
{
    uint64_t at = next_element(place, true, FUZZ_PV_RQ_STRIDE);

    fuzz_write(at, wqe, sizeof(*wqe));
    fuzz_write(at + sizeof(*wqe), sge, sizeof(*sge));
    publish(place, true);
}

uint32_t fuzz_pv_psn(uint32_t qpn, bool response)
{
    PvrdmaCmdHandle req = { .handle = qpn };
    PvrdmaRspQueryQp rsp;

    fuzz_pv_command(PVRDMA_CMD_QUERY_QP, &req, sizeof(req), &rsp, sizeof(rsp));
    return response ? rsp.attr.sq_psn - 1 : rsp.attr.rq_psn;
}

static void post_recvs(unsigned place)
{
    const PvrdmaSge sge = { FUZZ_IOVA, 4096, fuzz_guest.all };

    for (unsigned i = 0; i < FUZZ_PV_WRS / 2; i++) {
        fuzz_pv_post_recv(place, &(PvrdmaRecvWqe) {
            .wr_id = i, .num_sge = 1,
        }, &sge);
    }
}

void fuzz_pv_bring_up(bool checked)
{
    PvrdmaCmdCreateUc uc = {
        .pfn = FUZZ_PV_UAR / 0x1000 + FUZZ_PV_CTX,
    };

    set_names();
    bring_up_function();
    for (int i = 0; i < 2; i++) {
        PvrdmaCmdCreateBind bind = {
            .index = i, .gid_type = PVRDMA_GID_TYPE_ROCE_V2,
        };

        memcpy(bind.gid, fuzz_guest.gid[i], RDMA_GID_LEN);
        check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_BIND, &bind,
                                       sizeof(bind), NULL, 0));
    }
    check(checked, fuzz_pv_command(PVRDMA_CMD_CREATE_UC, &uc, sizeof(uc), NULL,
                                   0));
    fuzz_pv.pd[0] = create_pd(0, checked);
    fuzz_pv.pd[1] = create_pd(FUZZ_PV_CTX, checked);
    create_mr(checked);
    create_queues(checked);
    for (unsigned place = 0; place < FUZZ_QPS; place++) {
        fuzz_guest.qpn[place] = FUZZ_FAR_QPN;
        if (place != FUZZ_QP_UC_FAR) {
            create_qp(place, checked);
        }
    }
    for (unsigned place = 0; place < FUZZ_QPS; place++) {
        for (RdmaQpState state = RDMA_QPS_INIT;
             place != FUZZ_QP_UC_FAR && state <= RDMA_QPS_RTS; state++) {
            bool ok = fuzz_pv_modify(place, state);

            g_assert(ok || !checked);
        }
        if (place != FUZZ_QP_UC_FAR && place != FUZZ_QP_SRQ_FAR) {
            post_recvs(place);
        }
    }
}

/* Check that a new device works: A sends to B, and completes. */
static void renew(void)
{
    uint64_t cqe = FUZZ_PV_STATE(FUZZ_PV_CQ_DIR) + 0x1000;
    PvrdmaSendWqe wqe = {
        .wr_id = PROBE_ID,
        .num_sge = 1,
        .opcode = RDMA_WR_RDMA_WRITE,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.rdma.remote_addr = FUZZ_IOVA,
    };
    PvrdmaSge sge = { .addr = FUZZ_IOVA, .length = 64 };

    fuzz_guest.tears = 0;
    qmp_set_link("n0", true, &error_abort);
    fuzz_machine_reset();
    fuzz_pv_bring_up(true);
    wqe.wr.rdma.rkey = sge.lkey = fuzz_guest.all;
    fuzz_pv_post_send(FUZZ_QP_A, &wqe, &sge);
    for (int i = 0; i < PROBE_TURNS && fuzz_load(cqe, 8) != PROBE_ID; i++) {
        fuzz_settle();
    }
    g_assert_cmphex(fuzz_load(cqe, 8), ==, PROBE_ID);
    g_assert_cmpint(fuzz_load(cqe + offsetof(PvrdmaCqe, status), 4), ==,
                    RDMA_WC_SUCCESS);
}

static void prepare(QTestState *s)
{
    renew();
}

static void fuzz(QTestState *s, const unsigned char *data, size_t size)
{
    FuzzIn in = { data, size };

    for (unsigned n = 0; in.left && n < MAX_RECORDS; n++) {
        fuzz_pv_op(in_u8(&in))(&in);
        fuzz_drain_wire();
    }
    renew();
}

static void register_target(void)
{
    fuzz_add_target(&(FuzzTarget) {
        .name = config.name,
        .description = "The pvrdma device",
        .get_init_cmdline = cmdline,
        .pre_fuzz = prepare,
        .fuzz = fuzz,
    });
}

fuzz_target_init(register_target);
