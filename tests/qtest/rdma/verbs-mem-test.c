/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: memory that can be registered, its limit, and devices that take
 * memory from the guest.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "verbs-test.h"

#define PAGE RDMA_PAGE_SIZE
#define IOVA 0x40000000ull

#define DIMM_OPTIONS "-m slots=2,maxmem=1G " \
                     "-object memory-backend-memfd,id=m1,size=128M,share="
/* Above the 4 GiB that devices and low RAM share */
#define DIMM_ADDR (4 * GiB)
#define DIMM_SLOT_PORT 0xa00
#define DIMM_FLAGS_PORT 0xa14
#define DIMM_EJECT 8

/* Regions of pages that a test chooses */

static struct virtio_rdma_reg_user_mr_req
make_req(QRdmaPd *pd, const uint64_t *pages, uint32_t npages, uint64_t offset,
         uint64_t length)
{
    uint64_t table = qrdma_write_pages(pd->dev, pages, npages);

    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(VERBS_ACCESS_ALL),
        .start = cpu_to_le64(IOVA + offset),
        .virt_addr = cpu_to_le64(IOVA + offset),
        .length = cpu_to_le64(length),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(npages),
    };
}

static QRdmaMr made(QRdmaPd *pd, const struct virtio_rdma_mr_rsp *rsp,
                    const uint64_t *pages, uint32_t npages, uint64_t offset,
                    uint64_t length)
{
    QRdmaMr mr = {
        .pd = pd,
        .mrn = le32_to_cpu(rsp->mrn),
        .lkey = le32_to_cpu(rsp->lkey),
        .rkey = le32_to_cpu(rsp->rkey),
        .iova = IOVA + offset,
        .length = length,
        .npages = npages,
        .pages = qrdma_own(pd->dev, npages * sizeof(uint64_t)),
    };

    memcpy(mr.pages, pages, npages * sizeof(uint64_t));
    return mr;
}

static uint8_t try_reg(QRdmaPd *pd, const uint64_t *pages, uint32_t npages,
                       uint64_t offset, uint64_t length, QRdmaMr *mr)
{
    struct virtio_rdma_reg_user_mr_req req =
        make_req(pd, pages, npages, offset, length);
    struct virtio_rdma_mr_rsp rsp;
    uint8_t status = qrdma_reg_user_mr(pd->dev, &req, &rsp);

    if (status == VIRTIO_RDMA_S_OK) {
        *mr = made(pd, &rsp, pages, npages, offset, length);
    }
    return status;
}

/* Register @mr again, with these pages if @flags say so. */
static uint8_t try_rereg(QRdmaMr *mr, uint32_t flags, const uint64_t *pages,
                         uint32_t npages)
{
    struct virtio_rdma_rereg_mr_req req = {
        .mrn = cpu_to_le32(mr->mrn),
        .flags = cpu_to_le32(flags),
        .mr = make_req(mr->pd, pages, npages, 0, npages * PAGE),
    };
    struct virtio_rdma_mr_rsp rsp;
    uint8_t status = qrdma_call(mr->pd->dev, REREG_MR, &req, &rsp);

    if (status == VIRTIO_RDMA_S_OK) {
        *mr = made(mr->pd, &rsp, pages, npages, 0, npages * PAGE);
    }
    return status;
}

static uint8_t try_pages(QRdmaPd *pd, const uint64_t *pages, uint32_t npages,
                         QRdmaMr *mr)
{
    return try_reg(pd, pages, npages, 0, npages * PAGE, mr);
}

/* Send a message through both pages of a region. */
static void check_mr(VerbsPair *p, QRdmaMr *mr, uint8_t seed)
{
    RdmaSge from = qrdma_sge(mr, PAGE - 100, 200);
    RdmaSge to = qrdma_sge(p->mr_b, 0, 200);

    qrdma_mr_fill(mr, PAGE - 100, 200, seed);
    qrdma_recv(p->b, seed, &to);
    qrdma_post_expect(p->a, qrdma_wr(RDMA_WR_SEND, seed, &from),
                      RDMA_WC_SUCCESS);
    qrdma_expect(p->cq_b, seed, RDMA_WC_SUCCESS);
    qrdma_mr_check(p->mr_b, 0, 200, seed);
}

/* Number of QEMU's mappings */
static unsigned count_maps(Verbs *v)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/maps",
                                            qtest_pid(v->host->qts));
    g_autofree char *text = NULL;
    unsigned n = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (char *at = text; (at = strchr(at, '\n')); at++) {
        n++;
    }
    return n;
}

/* The property max-memory */

static bool set_max_memory(Verbs *v, uint64_t max)
{
    QDict *rsp = qtest_qmp(v->host->qts, "{'execute': 'qom-set', "
                           "'arguments': {'path': '/objects/r0', 'property': "
                           "'max-memory', 'value': %" PRIu64 "}}", max);
    bool ok = qdict_haskey(rsp, "return");

    qobject_unref(rsp);
    return ok;
}

static Verbs *limited(uint64_t max)
{
    Verbs *v = verbs_host(NULL);

    g_assert_true(set_max_memory(v, max));
    verbs_plug(v);
    return v;
}

static void test_max_memory(void)
{
    g_autoptr(Verbs) v = limited(4 * PAGE);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    uint64_t mem = qrdma_alloc(v->dev, 8 * PAGE);
    const uint64_t pages[] = {
        mem, mem + PAGE, mem + 3 * PAGE, mem + 2 * PAGE, mem + 6 * PAGE,
    };
    QRdmaMr a, b, c;

    g_assert_false(set_max_memory(v, 0));
    assert_status(try_pages(pd, pages, 5, &a), NOMEM);
    g_assert_cmpint(fake_verbs_calls(v->fake, "reg_mr_iova2"), ==, 0);
    assert_ok(try_pages(pd, pages, 4, &a));
    assert_status(try_pages(pd, pages, 1, &b), NOMEM);
    assert_ok(qrdma_dereg_mr(&a));

    /* Whole pages count, as often as they are registered */
    assert_ok(try_reg(pd, pages, 2, PAGE / 2, PAGE, &a));
    assert_ok(try_reg(pd, pages, 1, 0, 1, &b));
    assert_status(try_pages(pd, pages, 2, &c), NOMEM);
    assert_ok(try_pages(pd, pages, 1, &c));
    assert_ok(qrdma_dereg_mr(&a));
    assert_ok(try_pages(pd, pages, 2, &a));

    /* A reset frees all memory. */
    verbs_restart(v);
    pd = qrdma_alloc_pd(v->dev);
    assert_ok(try_pages(pd, pages, 4, &a));
    verbs_unplug(v);
    g_assert_true(set_max_memory(v, PAGE));
    verbs_plug(v);
    pd = qrdma_alloc_pd(v->dev);
    assert_status(try_pages(pd, pages, 2, &a), NOMEM);
    assert_ok(try_pages(pd, pages, 1, &a));
}

/* Regions that the host refuses do not count; regions that it keeps do. */
static void test_max_memory_and_errors(void)
{
    g_autoptr(Verbs) v = limited(2 * PAGE);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    uint64_t mem = qrdma_alloc(v->dev, 2 * PAGE);
    const uint64_t pages[] = { mem + PAGE, mem };
    QRdmaMr a, b;

    for (int i = 0; i < 3; i++) {
        fake_verbs_tell(v->fake, "fail reg_mr_iova2 ENOMEM");
        assert_status(try_pages(pd, pages, 2, &a), NOMEM);
    }
    assert_ok(try_pages(pd, pages, 2, &a));
    fake_verbs_tell(v->fake, "fail dereg_mr EBUSY");
    assert_status(qrdma_dereg_mr(&a), BUSY);
    assert_status(try_pages(pd, pages, 1, &b), NOMEM);
    assert_ok(qrdma_dereg_mr(&a));
    assert_ok(try_pages(pd, pages, 2, &a));
}

/* The host's device goes away, with regions that it did not free. */
static void test_max_memory_and_device_gone(void)
{
    g_autoptr(Verbs) v = limited(2 * PAGE);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    struct virtio_rdma_reg_user_mr_req req = verbs_reg_mr_req(pd);
    uint64_t mem = qrdma_alloc(v->dev, 2 * PAGE);
    const uint64_t pages[] = { mem + PAGE, mem };
    QRdmaMr mr;

    verbs_hold_cmd(v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                   sizeof(req), sizeof(struct virtio_rdma_mr_rsp));
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "fail dereg_mr EIO");
    fake_verbs_tell(v->fake, "release");
    verbs_restart(v);
    pd = qrdma_alloc_pd(v->dev);
    assert_status(try_pages(pd, pages, 2, &mr), NOMEM);
    fake_verbs_tell(v->fake, "device gone");
    qrdma_expect_event(v->dev, RDMA_EVENT_PORT_ERR, 1);
    fake_verbs_tell(v->fake, "device back");
    verbs_restart(v);
    pd = qrdma_alloc_pd(v->dev);
    assert_ok(try_pages(pd, pages, 2, &mr));
}

/* Reregistration */

/*
 * A reregistration that fails leaves the region as it was, with its keys. While
 * it runs, and only then, the pages of both count.
 */
static void test_reregistration(void)
{
    g_autoptr(Verbs) v = limited(40 * PAGE);
    uint64_t mem;
    VerbsPair p;
    QRdmaMr mr;

    qrdma_start(v->dev, 0, 0);
    qrdma_setup_gids(v->dev, 1);
    p = verbs_pair(v, RDMA_QPT_RC);
    mem = qrdma_alloc(v->dev, 6 * PAGE);
    {
        const uint64_t a[] = { mem + PAGE, mem };
        const uint64_t b[] = { mem + 5 * PAGE, mem + 2 * PAGE };
        const uint64_t many[] = { mem, mem, mem, mem, mem, mem, mem, mem };
        const uint64_t bad[] = { mem, 1ull << 40 };

        /* The pair has 32 pages */
        assert_ok(try_pages(p.pd, a, 2, &mr));
        check_mr(&p, &mr, 1);
        for (int i = 0; i < 10; i++) {
            assert_status(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, many,
                                    8), NOMEM);
            check_mr(&p, &mr, 2);
            fake_verbs_tell(v->fake, "fail reg_mr_iova2 EINVAL");
            assert_status(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, b, 2),
                          INVAL);
            check_mr(&p, &mr, 3);
            fake_verbs_tell(v->fake, "fail dereg_mr EBUSY");
            assert_status(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, b, 2),
                          BUSY);
            check_mr(&p, &mr, 4);
            g_assert_cmpint(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, bad,
                                      2), !=, VIRTIO_RDMA_S_OK);
            assert_ok(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, b, 2));
            check_mr(&p, &mr, 5);
            /* The same pages, which QEMU must recognize */
            assert_ok(try_rereg(&mr, VIRTIO_RDMA_REREG_ACCESS, b, 2));
            check_mr(&p, &mr, 6);
            assert_ok(try_rereg(&mr, VIRTIO_RDMA_REREG_TRANSLATION, a, 2));
            check_mr(&p, &mr, 7);
        }
        g_assert_cmpint(fake_verbs_count(v->fake, "mr"), ==, 3);
    }
}

/* Regions in many parts */

/*
 * @n pages that are not neighbours: all of the even ones, then all of the odd
 * ones, of as many as there are, again and again.
 */
static uint64_t *scatter(QRdma *d, uint32_t n)
{
    enum { HAVE = 512 };
    uint64_t mem = qrdma_alloc(d, HAVE * PAGE);
    uint64_t *pages = g_new(uint64_t, n);

    for (uint32_t i = 0; i < n; i++) {
        pages[i] = mem + (i * 2 % HAVE + i * 2 / HAVE % 2) * PAGE;
    }
    return pages;
}

static uint64_t host_max_maps(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/sys/vm/max_map_count", &text,
                                      NULL, NULL));
    return g_ascii_strtoull(text, NULL, 10);
}

/* QEMU itself needs some mappings, so the test does not try the last ones. */
static void test_more_parts_than_the_host_maps(void)
{
    uint64_t max = host_max_maps();
    g_autofree uint64_t *pages = NULL;
    VerbsPair p;
    QRdmaMr mr;
    g_autoptr(Verbs) v = NULL;

    if (max > 200000) {
        g_test_skip("vm.max_map_count is high");
        return;
    }
    v = verbs_new(NULL);
    p = verbs_pair(v, RDMA_QPT_RC);
    pages = scatter(v->dev, max);
    assert_status(try_pages(p.pd, pages, max - 3000, &mr), NOMEM);
    assert_status(try_pages(p.pd, pages, max, &mr), NOMEM);
    verbs_check_works(&p, 1);
    assert_ok(try_pages(p.pd, pages, 1000, &mr));
    check_mr(&p, &mr, 2);
}

/* The double keeps the pages with its own mappings while it has a region. */
static void test_mappings_are_given_back(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    g_autofree uint64_t *pages = scatter(v->dev, 3000);
    unsigned before = count_maps(v);
    QRdmaMr mr;

    for (int i = 0; i < 30; i++) {
        assert_ok(try_pages(p.pd, pages, 100 * i + 2, &mr));
        check_mr(&p, &mr, i + 1);
        assert_ok(qrdma_dereg_mr(&mr));
        fake_verbs_tell(v->fake, "fail reg_mr_iova2 EINVAL");
        assert_status(try_pages(p.pd, pages, 100 * i + 2, &mr), INVAL);
    }
    g_assert_cmpint(ABS((int)(count_maps(v) - before)), <, 50);
}

/* DIMMs */

static Verbs *with_dimm(const char *share)
{
    g_autofree char *options = g_strdup_printf(DIMM_OPTIONS "%s", share);
    Verbs *v = verbs_host_with(NULL, "share=on", options);

    qtest_qmp_device_add(v->host->qts, "pc-dimm", "dimm0",
                         "{'memdev': 'm1'}");
    g_assert_cmphex(qrdma_qom_get(v->host->qts, "/machine/peripheral/dimm0",
                                  "addr"), ==, DIMM_ADDR);
    verbs_plug(v);
    return v;
}

/* Eject the DIMM as the guest's ACPI code does. */
static void eject_dimm(Verbs *v)
{
    qtest_qmp_device_del_send(v->host->qts, "dimm0");
    qtest_outl(v->host->qts, DIMM_SLOT_PORT, 0);
    qtest_outb(v->host->qts, DIMM_FLAGS_PORT, DIMM_EJECT);
    qtest_qmp_eventwait(v->host->qts, "DEVICE_DELETED");
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'm1'}}");
}

/* The block has lost its name, but no other block has this size. */
static bool has_dimm_ram(Verbs *v)
{
    g_autofree char *blocks = qtest_hmp(v->host->qts, "info ramblock");

    return strstr(blocks, "0x0000000008000000");
}

static void test_dimm(void)
{
    g_autoptr(Verbs) v = with_dimm("on");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t mem = qrdma_alloc(v->dev, PAGE);
    const uint64_t pages[] = { DIMM_ADDR + 3 * PAGE, DIMM_ADDR, mem };
    QRdmaMr mr;

    assert_ok(try_pages(p.pd, pages, 3, &mr));
    check_mr(&p, &mr, 1);
    assert_ok(qrdma_dereg_mr(&mr));
}

/* Pages of such a DIMM can be registered in order, but not in another order. */
static void test_dimm_that_is_not_shared(void)
{
    g_autoptr(Verbs) v = with_dimm("off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t mem = qrdma_alloc(v->dev, PAGE);
    const uint64_t good[] = { DIMM_ADDR + PAGE, DIMM_ADDR + 2 * PAGE };
    const uint64_t bad[] = { mem, DIMM_ADDR + PAGE, DIMM_ADDR };
    unsigned maps;
    QRdmaMr mr;

    /* The double does not keep private pages, QEMU's RAM stays anyway */
    assert_ok(try_pages(p.pd, good, 2, &mr));
    check_mr(&p, &mr, 1);
    assert_ok(qrdma_dereg_mr(&mr));
    maps = count_maps(v);
    /* The second part of three fails, or the first of two */
    for (int i = 0; i < 100; i++) {
        assert_status(try_pages(p.pd, bad, 3, &mr), INVAL);
        assert_status(try_pages(p.pd, bad + 1, 2, &mr), INVAL);
    }
    g_assert_cmpint(ABS((int)(count_maps(v) - maps)), <, 50);
    verbs_check_works(&p, 1);
}

/* The host reaches the memory of a region as long as there is the region. */
static void test_dimm_goes_under_a_region(void)
{
    const uint64_t pages[] = { DIMM_ADDR + PAGE, DIMM_ADDR };
    g_autoptr(Verbs) v = with_dimm("on");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    RdmaSge sge;
    QRdmaMr mr;

    assert_ok(try_pages(p.pd, pages, 2, &mr));
    check_mr(&p, &mr, 1);
    qrdma_mr_fill(&mr, 0, 2 * PAGE, 77);
    g_assert_true(has_dimm_ram(v));
    eject_dimm(v);
    g_assert_true(has_dimm_ram(v));
    sge = qrdma_sge(&mr, 0, 2 * PAGE);
    {
        RdmaSge to = qrdma_sge(p.mr_b, 0, 2 * PAGE);
        RdmaSendWr send = {
            .wr_id = 2, .opcode = RDMA_WR_SEND, .sg_list = &sge, .num_sge = 1,
        };

        qrdma_recv(p.b, 2, &to);
        qrdma_post_send(p.a, &send);
        qrdma_expect(p.cq_b, 2, RDMA_WC_SUCCESS);
    }
    qrdma_mr_check(p.mr_b, 0, 2 * PAGE, 77);
    /* Nothing new can be registered there */
    {
        QRdmaMr other;

        g_assert_cmpint(try_pages(p.pd, pages, 2, &other), !=,
                        VIRTIO_RDMA_S_OK);
    }
    assert_ok(qrdma_dereg_mr(&mr));
    qrdma_wait_until(v->dev, !has_dimm_ram(v));
}

/* The same, and a reset or the end of the device frees the DIMM. */
static void test_dimm_is_given_up(void)
{
    const uint64_t pages[] = { DIMM_ADDR + PAGE, DIMM_ADDR };

    for (int unplug = 0; unplug < 2; unplug++) {
        g_autoptr(Verbs) v = with_dimm("on");
        QRdmaPd *pd = qrdma_alloc_pd(v->dev);
        QRdmaMr mr;

        assert_ok(try_pages(pd, pages, 2, &mr));
        assert_ok(try_pages(pd, pages, 2, &mr));
        eject_dimm(v);
        g_assert_true(has_dimm_ram(v));
        if (unplug) {
            verbs_unplug(v);
        } else {
            qrdma_reset(v->dev);
        }
        qrdma_wait_until(v->dev, !has_dimm_ram(v));
    }
}

/* Huge pages of the host */

#define HUGE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define HUGE_NEEDED 32

static int huge_pages(const char *which)
{
    g_autofree char *path = g_strdup_printf(HUGE_PAGES "%s", which);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? atoi(text) : 0;
}

/*
 * Ask the kernel for huge pages. It makes as many as it can, if the process may
 * ask.
 */
static void set_huge_pages(int n)
{
    FILE *f = fopen(HUGE_PAGES "nr_hugepages", "w");

    if (f) {
        fprintf(f, "%d", n);
        fclose(f);
    }
}

static void test_huge_pages(void)
{
    enum { HUGE = 2 * MiB };
    uint64_t pages[2 * HUGE / PAGE];
    int before = huge_pages("nr_hugepages");
    bool more = huge_pages("free_hugepages") < HUGE_NEEDED;
    QRdmaMr mr;
    unsigned calls;
    QRdmaPd *pd;
    g_autoptr(Verbs) v = NULL;

    if (more) {
        set_huge_pages(before + HUGE_NEEDED);
    }
    if (huge_pages("free_hugepages") < HUGE_NEEDED) {
        if (more) {
            set_huge_pages(before);
        }
        g_test_skip("the machine has no 32 free huge pages of 2 MiB");
        return;
    }
    v = verbs_host_with(NULL, "share=on,hugetlb=on,hugetlbsize=2M", "");
    if (more) {
        /* Those in use stay until QEMU ends. */
        set_huge_pages(before);
    }
    verbs_plug(v);
    pd = qrdma_alloc_pd(v->dev);
    /* Contiguous */
    for (int i = 0; i < HUGE / PAGE; i++) {
        pages[i] = 32 * MiB + i * PAGE;
    }
    assert_ok(try_pages(pd, pages, HUGE / PAGE, &mr));
    assert_ok(qrdma_dereg_mr(&mr));
    /* Two whole ones, the other way round */
    for (int i = 0; i < 2 * HUGE / PAGE; i++) {
        pages[i] = (i < HUGE / PAGE ? 36 : 30) * MiB + i * PAGE;
    }
    calls = fake_verbs_calls(v->fake, "reg_mr_iova2");
    /* The backend asks the host, but the double cannot keep these pages */
    try_pages(pd, pages, 2 * HUGE / PAGE, &mr);
    g_assert_cmpint(fake_verbs_calls(v->fake, "reg_mr_iova2"), ==, calls + 1);
    /* Parts of huge pages cannot be mapped */
    assert_status(try_pages(pd, pages + HUGE / PAGE - 1, 2, &mr), INVAL);
    g_assert_cmpint(fake_verbs_calls(v->fake, "reg_mr_iova2"), ==, calls + 1);
}

/* Devices that take memory from the guest */

static void test_virtio_mem(void)
{
    static const char *options = DIMM_OPTIONS "on "
        "-device virtio-mem-pci,id=vm0,memdev=m1,requested-size=0";
    Verbs *v = verbs_host_with(NULL, "share=on", options);

    verbs_refused(v, "'ibdev': '" FAKE_IBVERBS_DEVICE "'", "virtio-mem");
    verbs_free(v);

    v = verbs_host_with(NULL, "share=on", DIMM_OPTIONS "on");
    verbs_plug(v);
    qrdma_qmp_refused(v->host->qts, "{'execute': 'device_add', 'arguments': "
                      "{'driver': 'virtio-mem-pci', 'id': 'vm0', "
                      "'memdev': 'm1'}}", "");
    verbs_free(v);
}

/* Give the guest's page at @addr to the balloon. */
static void inflate(Verbs *v, QVirtioPCIDevice *balloon, QVirtQueue *vq,
                    uint64_t addr)
{
    uint64_t list = guest_alloc(&v->host->alloc, PAGE);
    uint32_t head;

    qtest_writel(v->host->qts, list, addr / PAGE);
    head = qvirtqueue_add(v->host->qts, vq, list, 4, false, false);
    qvirtqueue_kick(v->host->qts, &balloon->vdev, vq, head);
    qvirtio_wait_used_elem(v->host->qts, &balloon->vdev, vq, head, NULL,
                           20 * G_USEC_PER_SEC);
    guest_free(&v->host->alloc, list);
}

/* The balloon takes pages only while no device may have pinned them. */
static void test_balloon(void)
{
    g_autoptr(Verbs) v = verbs_host_with(NULL, "share=on",
                                         "-device virtio-balloon-pci,addr=7,"
                                         "disable-legacy=on");
    QTestState *qts = v->host->qts;
    QPCIAddress slot = { .devfn = QPCI_DEVFN(7, 0) };
    uint64_t page = guest_alloc(&v->host->alloc, PAGE);
    QVirtioPCIDevice *balloon;
    QVirtQueue *vq;

    verbs_plug(v);
    balloon = virtio_pci_new(v->host->bus, &slot);
    qvirtio_pci_device_enable(balloon);
    qvirtio_start_device(&balloon->vdev);
    qvirtio_set_features(&balloon->vdev, QRDMA_F(VIRTIO_F_VERSION_1));
    vq = qvirtqueue_setup(&balloon->vdev, &v->host->alloc, 0);
    qvirtio_set_driver_ok(&balloon->vdev);

    qtest_writel(qts, page, 0x12345678);
    inflate(v, balloon, vq, page);
    g_assert_cmphex(qtest_readl(qts, page), ==, 0x12345678);
    verbs_unplug(v);
    inflate(v, balloon, vq, page);
    g_assert_cmphex(qtest_readl(qts, page), ==, 0);
    qvirtqueue_cleanup(balloon->vdev.bus, vq, &v->host->alloc);
    qvirtio_pci_destructor(&balloon->obj);
    g_free(balloon);
}

const QRdmaTest verbs_mem_tests[] = {
    { "max-memory", test_max_memory },
    { "max-memory-and-errors", test_max_memory_and_errors },
    { "max-memory-and-device-gone", test_max_memory_and_device_gone },
    { "reregistration", test_reregistration },
    { "more-parts-than-the-host-maps", test_more_parts_than_the_host_maps },
    { "mappings-are-given-back", test_mappings_are_given_back },
    { "dimm", test_dimm },
    { "dimm-that-is-not-shared", test_dimm_that_is_not_shared },
    { "dimm-goes-under-a-region", test_dimm_goes_under_a_region },
    { "dimm-is-given-up", test_dimm_is_given_up },
    { "huge-pages", test_huge_pages },
    { "virtio-mem", test_virtio_mem },
    { "balloon", test_balloon },
    {}
};
