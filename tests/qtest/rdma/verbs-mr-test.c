/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: regions that are registered again, of memory that is ROM or
 * none at all; and no fast registration.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

/* Addresses of a PC's firmware, and of nothing */
#define ROM 0xfffff000ull
#define NOTHING 0xd0000000ull
#define IOVA 0x5000ull
#define READABLE RDMA_ACCESS_REMOTE_READ
#define WRITABLE (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE)

static Verbs *verbs_rereg(void)
{
    Verbs *v = verbs_new(NULL);

    qrdma_start(v->dev, 0, 0);
    qrdma_setup_gids(v->dev, 1);
    return v;
}

static struct virtio_rdma_reg_user_mr_req region(QRdmaPd *pd, uint64_t page,
                                                 uint32_t access)
{
    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(access),
        .start = cpu_to_le64(IOVA),
        .virt_addr = cpu_to_le64(IOVA),
        .length = cpu_to_le64(4096),
        .pages = cpu_to_le64(qrdma_write_pages(pd->dev, &page, 1)),
        .npages = cpu_to_le32(1),
        .levels = cpu_to_le32(1),
    };
}

static uint8_t reg(QRdmaPd *pd, uint64_t page, uint32_t access, QRdmaMr *mr)
{
    struct virtio_rdma_reg_user_mr_req req = region(pd, page, access);
    struct virtio_rdma_mr_rsp rsp = {};
    uint8_t status = qrdma_reg_user_mr(pd->dev, &req, &rsp);

    *mr = (QRdmaMr) {
        .pd = pd,
        .mrn = le32_to_cpu(rsp.mrn),
        .lkey = le32_to_cpu(rsp.lkey),
        .rkey = le32_to_cpu(rsp.rkey),
        .iova = IOVA,
        .length = 4096,
    };
    return status;
}

static uint8_t rereg(QRdmaMr *mr, uint32_t flags, uint64_t page,
                     uint32_t access)
{
    struct virtio_rdma_rereg_mr_req req = {
        .mrn = cpu_to_le32(mr->mrn),
        .flags = cpu_to_le32(flags),
        .mr = region(mr->pd, page, access),
    };
    struct virtio_rdma_mr_rsp rsp;
    uint8_t status = qrdma_call(mr->pd->dev, REREG_MR, &req, &rsp);

    if (status == VIRTIO_RDMA_S_OK) {
        mr->lkey = le32_to_cpu(rsp.lkey);
        mr->rkey = le32_to_cpu(rsp.rkey);
    }
    return status;
}

/* Let a read the first bytes of @mr, a region of b. */
static void check_read(VerbsPair *p, QRdmaMr *mr, uint64_t page)
{
    RdmaSge sge = qrdma_sge(p->mr_a, 0, 16);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_READ, 7, &sge);
    uint8_t got[16], want[16];

    wr.wr.rdma.remote_addr = mr->iova;
    wr.wr.rdma.rkey = mr->rkey;
    qrdma_post_expect(p->a, wr, RDMA_WC_SUCCESS);
    qrdma_mr_read(p->mr_a, 0, got, sizeof(got));
    qrdma_read(p->v->dev, page, want, sizeof(want));
    g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
}

/* A peer can read ROM. No peer can write it, whatever rights are asked for. */
static void test_rom(void)
{
    g_autoptr(Verbs) v = verbs_rereg();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t ram = qrdma_alloc(v->dev, 4096);
    QRdmaMr mr;

    assert_status(reg(p.pd, ROM, WRITABLE, &mr), INVAL);
    assert_ok(reg(p.pd, ROM, READABLE, &mr));
    check_read(&p, &mr, ROM);
    assert_status(rereg(&mr, VIRTIO_RDMA_REREG_ACCESS, 0, WRITABLE), INVAL);
    assert_status(rereg(&mr, VIRTIO_RDMA_REREG_ACCESS |
                        VIRTIO_RDMA_REREG_TRANSLATION, ROM, WRITABLE), INVAL);
    /* the region is unchanged */
    check_read(&p, &mr, ROM);
    assert_ok(rereg(&mr, VIRTIO_RDMA_REREG_ACCESS |
                    VIRTIO_RDMA_REREG_TRANSLATION, ram,
                    READABLE | WRITABLE));
    check_read(&p, &mr, ram);
    assert_status(rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, ROM, 0), INVAL);
    assert_ok(rereg(&mr, VIRTIO_RDMA_REREG_ACCESS, 0, READABLE));
    assert_ok(rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, ROM, 0));
    check_read(&p, &mr, ROM);
    assert_ok(qrdma_dereg_mr(&mr));
}

static void test_no_memory_there(void)
{
    static const uint64_t bad[] = {
        NOTHING, 0xfee00000, 1ull << 40, 0xfffffffffffff000,
    };
    g_autoptr(Verbs) v = verbs_rereg();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t ram = qrdma_alloc(v->dev, 4096);
    unsigned count = fake_verbs_count(v->fake, "mr");
    QRdmaMr mr, more;

    assert_ok(reg(p.pd, ram, READABLE, &mr));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        g_assert_cmpint(reg(p.pd, bad[i], READABLE, &more), !=,
                        VIRTIO_RDMA_S_OK);
        g_assert_cmpint(rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, bad[i], 0),
                        !=, VIRTIO_RDMA_S_OK);
        check_read(&p, &mr, ram);
        g_assert_cmpint(fake_verbs_count(v->fake, "mr"), ==, count + 1);
    }
}

/* A reregistration that the host refuses leaves the region unchanged. */
static void test_host_refuses_to_register_again(void)
{
    static const char *const verbs[] = { "reg_mr_iova2", "dereg_mr" };
    g_autoptr(Verbs) v = verbs_rereg();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t ram = qrdma_alloc(v->dev, 8192);
    unsigned count = fake_verbs_count(v->fake, "mr");
    QRdmaMr mr;

    qrdma_write(v->dev, ram + 4096, "another one", 12);
    assert_ok(reg(p.pd, ram, READABLE, &mr));
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        fake_verbs_tell(v->fake, "fail %s ENOMEM", verbs[i]);
        assert_status(rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, ram + 4096,
                            0), NOMEM);
        check_read(&p, &mr, ram);
        g_assert_cmpint(fake_verbs_count(v->fake, "mr"), ==, count + 1);
    }
    assert_ok(rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, ram + 4096, 0));
    check_read(&p, &mr, ram + 4096);
    g_assert_cmpint(fake_verbs_count(v->fake, "mr"), ==, count + 1);
}

/* A reset comes while the host registers the region again. */
static void test_reset_while_registered_again(void)
{
    g_autoptr(Verbs) v = verbs_rereg();
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    uint64_t ram = qrdma_alloc(v->dev, 4096);
    struct virtio_rdma_rereg_mr_req req = {
        .flags = cpu_to_le32(VIRTIO_RDMA_REREG_ACCESS),
    };
    QRdmaMr mr;

    assert_ok(reg(pd, ram, READABLE, &mr));
    req.mrn = cpu_to_le32(mr.mrn);
    verbs_hold_cmd(v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REREG_MR, &req,
                   sizeof(req), sizeof(struct virtio_rdma_mr_rsp));
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "release");
    verbs_await_clean(v);
    verbs_restart(v);
}

/* User-space verbs have no such regions; regions of other kinds work. */
static void test_without_fast_registration(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    struct virtio_rdma_create_mr_req req = {
        .pdn = cpu_to_le32(p.pd->pdn), .access = cpu_to_le32(WRITABLE),
        .max_num_sg = cpu_to_le32(8),
    };
    RdmaSendWr wr = qrdma_wr(RDMA_WR_REG_MR, 3, NULL);
    struct virtio_rdma_mr_rsp rsp;
    struct virtio_rdma_config c;
    QRdmaMr mapped = *p.mr_a;

    qrdma_get_config(v->dev, &c);
    g_assert_cmphex(le64_to_cpu(c.device_cap_flags) &
                    VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS, ==, 0);
    g_assert_cmpuint(c.max_fast_reg_page_list_len, ==, 0);
    g_assert_cmpuint(c.max_reg_pages, ==, 0);
    assert_status(qrdma_call(v->dev, CREATE_MR, &req, &rsp), NOTSUPP);
    assert_status(qrdma_map_mr_sg(&mapped, mapped.iova, 4096), NOTSUPP);
    wr.wr.reg.mrn = p.mr_a->mrn;
    wr.wr.reg.key = p.mr_a->lkey;
    qrdma_post_expect(p.a, wr, RDMA_WC_LOC_QP_OP_ERR);
    qrdma_reconnect(p.a, p.b, NULL);
    verbs_check_works(&p, 7);
}

/* The guest gets windows only of a host that has both types. */
static void test_windows_of_one_type(void)
{
    static const struct {
        uint64_t flags;
        bool has_mw;
    } cases[] = {
        { VIRTIO_RDMA_CAP_MEM_WINDOW, false },
        { VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B, false },
        { VIRTIO_RDMA_CAP_MEM_WINDOW | VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B,
          true },
    };

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *script = g_strdup_printf(
            "attr device_cap_flags %" PRIu64, cases[i].flags);
        g_autoptr(Verbs) v = verbs_new(script);
        struct virtio_rdma_config c;

        qrdma_get_config(v->dev, &c);
        g_assert_cmpint(c.max_mw != 0, ==, cases[i].has_mw);
        g_assert_cmpint((le64_to_cpu(c.device_cap_flags) &
                         VIRTIO_RDMA_CAP_MEM_WINDOW) != 0, ==,
                        cases[i].has_mw);
    }
}

const QRdmaTest verbs_mr_tests[] = {
    { "windows-of-one-type", test_windows_of_one_type },
    { "without-fast-registration", test_without_fast_registration },
    { "rom", test_rom },
    { "no-memory-there", test_no_memory_there },
    { "host-refuses-to-register-again", test_host_refuses_to_register_again },
    { "reset-while-registered-again", test_reset_while_registered_again },
    {}
};
