/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: memory that is plugged into the machine, used by
 * them, and unplugged again. The test does the guest's part, with the registers
 * of docs/specs/acpi_mem_hotplug.rst.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "net-test.h"

/* Memory hot-plug interface */
#define MEM_SLOT 0xa00              /* selects the slot; then its address */
#define MEM_SIZE 0xa08
#define MEM_CTRL 0xa14
#define MEM_ENABLED 0x1
#define MEM_INSERTED 0x2            /* an event; writing 1 clears it */
#define MEM_REMOVING 0x4            /* likewise */
#define MEM_EJECT 0x8

#define DIMM_SIZE (32 * MiB)
#define LEN 20000
#define LONG (1 * MiB)
#define IOVA 0x40000000ull

/* Local ACK timeout (IBTA 9.7.6.1.3): 4.096 us * 2^code */
#define TIMEOUT_CODE 8
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)

static const QRdmaPath usual_path = { .timeout = TIMEOUT_CODE };

/* Both devices in a machine with a slot for memory. */
typedef struct Plug {
    NetPair p;
    QTestState *qts;
    uint64_t addr;                  /* of the memory, while it is there */
    QRdmaMr *dma;                   /* a DMA MR of device a */
} Plug;

static Plug plug_new(void)
{
    Net *net = net_new(NET_HUB, "-m 64M,slots=1,maxmem=1G");
    Plug t = { .p = net_pair_new(net, RDMA_QPT_RC),
               .qts = net->host[0]->qts };

    qrdma_connect(t.p.a.qp, t.p.b.qp, &usual_path);
    t.dma = qrdma_get_dma_mr(t.p.a.pd, RDMA_ACCESS_LOCAL_WRITE);
    return t;
}

static void plug_free(Plug *t)
{
    net_free(t->p.net);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Plug, plug_free)

static void plug_memory(Plug *t)
{
    qtest_qmp_assert_success(t->qts, "{'execute': 'object-add', "
        "'arguments': {'qom-type': 'memory-backend-ram', 'id': 'mem0', "
        "'size': %" PRIu64 "}}", (uint64_t)DIMM_SIZE);
    qtest_qmp_device_add(t->qts, "pc-dimm", "dimm0", "{'memdev': 'mem0'}");

    qtest_outl(t->qts, MEM_SLOT, 0);
    g_assert_cmphex(qtest_inb(t->qts, MEM_CTRL), ==,
                    MEM_ENABLED | MEM_INSERTED);
    qtest_outb(t->qts, MEM_CTRL, MEM_INSERTED);
    t->addr = qtest_inl(t->qts, MEM_SLOT) |
              (uint64_t)qtest_inl(t->qts, MEM_SLOT + 4) << 32;
    g_assert_cmpuint(qtest_inl(t->qts, MEM_SIZE), ==, DIMM_SIZE);
}

/* The memory backend goes, too: nothing uses it any more. */
static void unplug_memory(Plug *t)
{
    uint64_t word = ~0ull;

    qtest_qmp_device_del_send(t->qts, "dimm0");
    g_assert_cmphex(qtest_inb(t->qts, MEM_CTRL), ==,
                    MEM_ENABLED | MEM_REMOVING);
    qtest_outb(t->qts, MEM_CTRL, MEM_REMOVING);
    qtest_outb(t->qts, MEM_CTRL, MEM_EJECT);
    qtest_qmp_eventwait(t->qts, "DEVICE_DELETED");
    g_assert_cmphex(qtest_inb(t->qts, MEM_CTRL), ==, 0);
    qtest_qmp_assert_success(t->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'mem0'}}");
    qtest_memwrite(t->qts, t->addr, &word, sizeof(word));
    g_assert_cmphex(qtest_readq(t->qts, t->addr), !=, word);
}

static void fill(Plug *t, uint64_t offset, size_t len, uint8_t seed)
{
    g_autofree uint8_t *data = g_malloc(len);

    for (size_t i = 0; i < len; i++) {
        data[i] = i * 3 + (i >> 8) + seed;
    }
    qtest_bufwrite(t->qts, t->addr + offset, data, len);
}

/* Assert that two regions, or a region and plugged memory, have equal bytes. */
static void check_same(Plug *t, QRdmaMr *mr, uint64_t at, uint64_t offset,
                       size_t len)
{
    g_autofree uint8_t *is = g_malloc(len);
    g_autofree uint8_t *want = g_malloc(len);

    qrdma_mr_read(mr, at, is, len);
    qtest_bufread(t->qts, t->addr + offset, want, len);
    g_assert_cmpmem(is, len, want, len);
}

static RdmaSge dma_sge(Plug *t, uint64_t offset, uint32_t len)
{
    return (RdmaSge) { t->addr + offset, len, t->dma->lkey };
}

/* After an error. */
static void reconnect(Plug *t)
{
    qrdma_reconnect(t->p.a.qp, t->p.b.qp, &usual_path);
    qrdma_expect_none(t->p.a.scq);
    qrdma_expect_none(t->p.a.rcq);
    qrdma_expect_none(t->p.b.scq);
    qrdma_expect_none(t->p.b.rcq);
}

static void post_recv(QRdmaQp *qp, uint64_t wr_id, RdmaSge sge)
{
    qrdma_recv(qp, wr_id, &sge);
}

/* Each operation of a whose SGE names plugged memory, to or from b. */
static void use_dma_mr(Plug *t, RdmaWrOpcode opcode, RdmaWcStatus status)
{
    static uint8_t seed;
    RdmaSge sge = dma_sge(t, 100, LEN);
    bool there = status == RDMA_WC_SUCCESS;
    RdmaWc wc;

    if (there) {
        fill(t, 100, LEN, ++seed);
    }
    qrdma_mr_fill(t->p.b.mr, 0, LEN, ++seed);
    if (opcode == RDMA_WR_SEND) {
        net_post_recv(&t->p.b, 2, 0, LEN);
    }
    qrdma_post(t->p.a.qp, qrdma_rdma_wr(opcode, 1, &sge, t->p.b.mr, 0));
    qrdma_expect(t->p.a.scq, 1, status);
    if (!there) {
        qrdma_mr_check(t->p.b.mr, 0, LEN, seed);
        reconnect(t);
        return;
    }
    if (opcode == RDMA_WR_SEND) {
        qrdma_expect_wc(t->p.b.rcq, 2, RDMA_WC_RECV, &wc);
        g_assert_cmpuint(wc.byte_len, ==, LEN);
    }
    if (opcode == RDMA_WR_RDMA_READ) {
        qrdma_mr_check(t->p.b.mr, 0, LEN, seed);
    }
    check_same(t, t->p.b.mr, 0, 100, LEN);
}

/* A message of b to a receive of a in plugged memory. */
static void receive_dma_mr(Plug *t, bool there)
{
    RdmaSge from = net_sge(&t->p.b, 0, LEN);

    qrdma_mr_fill(t->p.b.mr, 0, LEN, 0x42);
    post_recv(t->p.a.qp, 2, dma_sge(t, 5000, LEN));
    qrdma_post(t->p.b.qp, qrdma_wr(RDMA_WR_SEND, 1, &from));
    if (there) {
        qrdma_expect_wc(t->p.b.scq, 1, RDMA_WC_SEND, NULL);
        qrdma_expect_wc(t->p.a.rcq, 2, RDMA_WC_RECV, NULL);
        check_same(t, t->p.b.mr, 0, 5000, LEN);
    } else {
        qrdma_expect(t->p.a.rcq, 2, RDMA_WC_LOC_PROT_ERR);
        qrdma_expect(t->p.b.scq, 1, RDMA_WC_REM_OP_ERR);
        reconnect(t);
    }
}

static void use_all_of_dma_mr(Plug *t, bool there)
{
    RdmaWcStatus status = there ? RDMA_WC_SUCCESS : RDMA_WC_LOC_PROT_ERR;

    use_dma_mr(t, RDMA_WR_RDMA_WRITE, status);
    use_dma_mr(t, RDMA_WR_SEND, status);
    use_dma_mr(t, RDMA_WR_RDMA_READ, status);
    receive_dma_mr(t, there);
}

/* A DMA MR covers all memory of the machine, also memory plugged in later. */
static void test_dma_mr_follows_memory(void)
{
    g_auto(Plug) t = plug_new();

    for (int i = 0; i < 2; i++) {
        plug_memory(&t);
        use_all_of_dma_mr(&t, true);
        unplug_memory(&t);
        use_all_of_dma_mr(&t, false);
    }
}

/* Each operation of a on a region of b that has its pages there. */
static void use_region(Plug *t, QRdmaMr *mr, RdmaWcStatus status)
{
    RdmaSge sge = net_sge(&t->p.a, 0, LEN);
    RdmaSge word = net_sge(&t->p.a, LEN, 8);
    const struct {
        RdmaSendWr wr;
        RdmaWcOpcode opcode;
    } use[] = {
        { qrdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge), RDMA_WC_RDMA_WRITE },
        { qrdma_wr(RDMA_WR_RDMA_READ, 2, &sge), RDMA_WC_RDMA_READ },
        { qrdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 3, &word),
          RDMA_WC_FETCH_ADD },
    };

    for (int i = 0; i < ARRAY_SIZE(use); i++) {
        RdmaSendWr wr = use[i].wr;

        if (wr.opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
            wr.wr.atomic = (typeof(wr.wr.atomic)) {
                .remote_addr = mr->iova, .rkey = mr->rkey, .compare_add = 1,
            };
        } else {
            wr.wr.rdma.remote_addr = mr->iova;
            wr.wr.rdma.rkey = mr->rkey;
        }
        qrdma_mr_fill(t->p.a.mr, 0, LEN, i);
        qrdma_post_send(t->p.a.qp, &wr);
        if (status == RDMA_WC_SUCCESS) {
            qrdma_expect_wc(t->p.a.scq, wr.wr_id, use[i].opcode, NULL);
            if (i < 2) {
                check_same(t, t->p.a.mr, 0, 0, LEN);
            }
        } else {
            qrdma_expect(t->p.a.scq, wr.wr_id, status);
            qrdma_mr_check(t->p.a.mr, 0, LEN, i);
            reconnect(t);
        }
    }
}

/* Side b uses the region, too. */
static void send_region(Plug *t, QRdmaMr *mr, RdmaWcStatus status)
{
    RdmaSge sge = qrdma_sge(mr, 0, LEN);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, t->p.a.mr, 0);

    qrdma_post_expect(t->p.b.qp, wr, status);
    if (status == RDMA_WC_SUCCESS) {
        check_same(t, t->p.a.mr, 0, 0, LEN);
    } else {
        reconnect(t);
    }
}

/* The pages of a region go away, and work again when they come back. */
static void test_region_loses_its_memory(void)
{
    g_auto(Plug) t = plug_new();
    QRdmaMr *mr;

    plug_memory(&t);
    mr = qrdma_reg_mr_at(t.p.b.pd, IOVA, 64 * KiB, NET_ACCESS_ALL, t.addr);
    for (int i = 0; i < 2; i++) {
        fill(&t, 0, LEN, i);
        send_region(&t, mr, RDMA_WC_SUCCESS);
        use_region(&t, mr, RDMA_WC_SUCCESS);
        unplug_memory(&t);
        use_region(&t, mr, RDMA_WC_REM_OP_ERR);
        send_region(&t, mr, RDMA_WC_LOC_PROT_ERR);
        plug_memory(&t);
    }
    unplug_memory(&t);
    assert_ok(qrdma_dereg_mr(mr));
}

/*
 * Lose a quarter of all frames, so that a long message cannot end without
 * delay.
 */
static void lose_frames(Plug *t, bool lose)
{
    if (lose) {
        qtest_qmp_assert_success(t->qts, "{'execute': 'object-add', "
            "'arguments': {'qom-type': 'filter-impair', 'id': 'lossy', "
            "'netdev': 'n0', 'drop': 2500, 'seed': 7}}");
    } else {
        qtest_qmp_assert_success(t->qts, "{'execute': 'object-del', "
                                 "'arguments': {'id': 'lossy'}}");
    }
}

/* Wait for a completion, and let as many timeouts pass as that takes. */
static void expect_in_time(Plug *t, QRdmaCq *cq, uint64_t wr_id,
                           RdmaWcStatus status)
{
    RdmaWc wc;

    for (int i = 0; !qrdma_poll_cq(cq, &wc); i++) {
        g_assert_cmpint(i, <, 200);
        net_clock_step(t->p.net, TIMEOUT_NS);
        qrdma_settle(t->p.a.dev);
    }
    g_assert_cmphex(wc.wr_id, ==, wr_id);
    g_assert_cmpint(wc.status, ==, status);
}

/* Wait until a transfer to @addr has begun; assert that it is not over. */
static void wait_for_part(Plug *t, uint64_t addr)
{
    uint8_t last;

    for (int i = 0; qtest_readb(t->qts, addr) != 0x5a; i++) {
        g_assert_cmpint(i, <, 200);
        net_clock_step(t->p.net, TIMEOUT_NS);
        qrdma_settle(t->p.a.dev);
    }
    last = qtest_readb(t->qts, addr + LONG - 1);
    g_assert_cmphex(last, ==, 0);
    qrdma_expect_none(t->p.a.scq);
    qrdma_expect_none(t->p.b.rcq);
}

typedef enum Way {
    WRITE_FROM,                     /* a writes from plugged memory to b */
    WRITE_TO,                       /* a writes to plugged memory of b */
    READ_FROM,
    READ_TO,
    SEND_TO,                        /* b receives into plugged memory */
    WAYS,
} Way;

/* Unplug the memory during a transfer of a megabyte from or to it. */
static void lose_memory(Way way)
{
    static const RdmaWcStatus status[WAYS] = {
        [WRITE_FROM] = RDMA_WC_LOC_PROT_ERR,
        [WRITE_TO] = RDMA_WC_REM_OP_ERR,
        /* A duplicate of a READ that cannot be answered again is dropped. */
        [READ_FROM] = RDMA_WC_RETRY_EXC_ERR,
        [READ_TO] = RDMA_WC_LOC_PROT_ERR,
        [SEND_TO] = RDMA_WC_REM_OP_ERR,
    };
    static const RdmaWrOpcode opcodes[WAYS] = {
        [WRITE_FROM] = RDMA_WR_RDMA_WRITE,
        [WRITE_TO] = RDMA_WR_RDMA_WRITE,
        [READ_FROM] = RDMA_WR_RDMA_READ,
        [READ_TO] = RDMA_WR_RDMA_READ,
        [SEND_TO] = RDMA_WR_SEND,
    };
    bool local = way == WRITE_FROM || way == READ_TO;
    bool from = way == WRITE_FROM || way == READ_FROM;
    g_auto(Plug) t = plug_new();
    uint64_t other = qrdma_alloc(t.p.a.dev, LONG);
    QRdmaMr *near, *far;
    RdmaSendWr wr;
    RdmaSge sge;

    plug_memory(&t);
    near = qrdma_reg_mr_at(t.p.a.pd, IOVA, LONG, NET_ACCESS_ALL,
                           local ? t.addr : other);
    far = qrdma_reg_mr_at(t.p.b.pd, IOVA, LONG, NET_ACCESS_ALL,
                          local ? other : t.addr);
    qtest_memset(t.qts, from ? t.addr : other, 0x5a, LONG);
    qtest_memset(t.qts, from ? other : t.addr, 0, LONG);

    sge = qrdma_sge(near, 0, LONG);
    if (local) {
        sge = dma_sge(&t, 0, LONG);
    }
    wr = qrdma_wr(opcodes[way], 1, &sge);
    if (way == SEND_TO) {
        post_recv(t.p.b.qp, 2, qrdma_sge(far, 0, LONG));
    } else {
        wr.wr.rdma.remote_addr = far->iova;
        wr.wr.rdma.rkey = far->rkey;
    }
    lose_frames(&t, true);
    qrdma_post_send(t.p.a.qp, &wr);
    wait_for_part(&t, from ? other : t.addr);
    unplug_memory(&t);
    lose_frames(&t, false);

    expect_in_time(&t, t.p.a.scq, 1, status[way]);
    if (way == SEND_TO) {
        qrdma_expect(t.p.b.rcq, 2, RDMA_WC_LOC_PROT_ERR);
    }
    reconnect(&t);
    plug_memory(&t);
    use_all_of_dma_mr(&t, true);
}

static void test_memory_goes_during_a_transfer(void)
{
    for (Way way = 0; way < WAYS; way++) {
        lose_memory(way);
    }
}

const QRdmaTest net_hotplug_tests[] = {
    { "dma-mr-follows-memory", test_dma_mr_follows_memory },
    { "region-loses-its-memory", test_region_loses_its_memory },
    { "memory-goes-during-a-transfer", test_memory_goes_during_a_transfer },
    {}
};
