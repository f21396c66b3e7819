/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: identification and configuration space
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/pci_regs.h"

/* The spec's sizes and offsets, against the header that drivers use. */
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_config) != 640);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, atomic_cap) != 96);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, max_pkeys) != 125);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, mac) != 128);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, max_inline_data) != 136);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, max_cqe_deep) != 152);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, max_reg_pages) != 168);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_config, max_srq_direct) != 184);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_query_port_rsp) != 161);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_map_mr_sg_req) != 32);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_reg_user_mr_req) != 52);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_create_qp_req) != 66);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_qpn) != 4);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_create_qp_rsp) != 8);
QEMU_BUILD_BUG_ON(offsetof(struct virtio_rdma_create_qp_rsp, wire_qpn) != 4);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_qp_attr) != 129);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_modify_qp_req) != 137);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_query_pkey_req) != 6);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_add_gid_req) != 28);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_del_gid_req) != 6);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_sq_wqe) != 75);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_rq_wqe) != 12);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_sge) != 16);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_cqe) != 38);

static void test_pci_identity(void)
{
    QPCIDevice *pdev = test_device()->pci->pdev;

    g_assert_cmphex(qpci_config_readw(pdev, PCI_VENDOR_ID), ==, 0x1af4);
    g_assert_cmphex(qpci_config_readw(pdev, PCI_DEVICE_ID), ==, 0x106a);
    g_assert_cmphex(qpci_config_readw(pdev, PCI_CLASS_DEVICE), ==, 0x0280);
    /* modern only */
    g_assert_cmphex(qpci_config_readb(pdev, PCI_REVISION_ID), >=, 1);
}

static void test_reads_of_any_size_at_any_offset(void)
{
    QRdma *d = test_device();
    uint8_t bytes[sizeof(struct virtio_rdma_config)];

    qrdma_get_config(d, (struct virtio_rdma_config *)bytes);
    for (uint32_t at = 0; at < sizeof(bytes); at++) {
        for (unsigned size = 2; size <= 8; size *= 2) {
            uint64_t want = 0;

            if (at + size > sizeof(bytes)) {
                continue;
            }
            for (unsigned i = 0; i < size; i++) {
                want |= (uint64_t)bytes[at + i] << (8 * i);
            }
            g_assert_cmphex(qrdma_config_read(d, at, size), ==, want);
        }
    }
}

static void test_reads_past_the_end(void)
{
    QRdma *d = test_device();
    uint32_t pdn;

    for (uint32_t at = 633; at < 700; at++) {
        for (unsigned size = 1; size <= 8; size *= 2) {
            qrdma_config_read(d, at, size);
        }
    }
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
}

static void test_values(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_config c;
    static const uint8_t zero[452];
    static const uint8_t guid[8] = {
        0x52 ^ 2, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x01,
    };
    uint64_t caps;

    qrdma_get_config(d, &c);
    g_assert_cmpuint(le32_to_cpu(c.phys_port_cnt), ==, 1);
    g_assert_cmphex(le32_to_cpu(c.vendor_id), ==, 0x525400);
    g_assert_cmpuint(le32_to_cpu(c.vendor_part_id), ==, 42);
    g_assert_cmpuint(le32_to_cpu(c.hw_ver), ==, 1);
    g_assert_cmpuint(le32_to_cpu(c.max_qp), ==, TEST_MAX_QP);
    g_assert_cmpuint(le32_to_cpu(c.max_cq), ==, TEST_MAX_CQ);
    g_assert_cmpuint(le32_to_cpu(c.max_mr), ==, TEST_MAX_MR);
    g_assert_cmpuint(le32_to_cpu(c.max_pd), ==, TEST_MAX_PD);
    g_assert_cmpuint(le32_to_cpu(c.max_qp_wr), ==, 1024);
    g_assert_cmpuint(le32_to_cpu(c.max_qp_wr_direct), ==, 32768);
    g_assert_cmpuint(le32_to_cpu(c.max_qp_direct), ==, TEST_MAX_QP);
    g_assert_cmpuint(le32_to_cpu(c.max_cqe), ==, 1024);
    g_assert_cmpuint(le32_to_cpu(c.max_cqe_deep), ==, 32768);
    g_assert_cmpuint(le32_to_cpu(c.max_cq_direct), ==, TEST_MAX_CQ);
    g_assert_cmpuint(le32_to_cpu(c.max_send_sge), >=, 4);
    g_assert_cmpuint(le32_to_cpu(c.max_recv_sge), >=, 4);
    g_assert_cmpuint(le32_to_cpu(c.max_sge_rd), >=, 1);
    g_assert_cmpuint(le64_to_cpu(c.max_mr_size), >=, 1ull << 30);
    g_assert_cmphex(le64_to_cpu(c.page_size_cap), ==, 4096);
    g_assert_cmpuint(le32_to_cpu(c.max_qp_rd_atom), >=, 1);
    g_assert_cmpuint(le32_to_cpu(c.max_qp_init_rd_atom), >=, 1);
    g_assert_cmpuint(le32_to_cpu(c.max_res_rd_atom), >=,
                     le32_to_cpu(c.max_qp_rd_atom));
    g_assert_cmpuint(c.atomic_cap, <=, VIRTIO_RDMA_ATOMIC_GLOB);
    g_assert_cmpuint(le32_to_cpu(c.max_mcast_grp), ==, TEST_MAX_MCAST_GRP);
    g_assert_cmpuint(le32_to_cpu(c.max_mcast_qp_attach), ==,
                     TEST_MAX_MCAST_GRP);
    g_assert_cmpuint(le32_to_cpu(c.max_total_mcast_qp_attach), ==,
                     TEST_MAX_MCAST_GRP * TEST_MAX_MCAST_GRP);
    g_assert_cmpuint(le32_to_cpu(c.max_srq), ==, TEST_MAX_SRQ);
    g_assert_cmpuint(le32_to_cpu(c.max_srq_direct), ==, TEST_MAX_SRQ);
    g_assert_cmpuint(le32_to_cpu(c.max_srq_wr), ==, TEST_MAX_SRQ_WR);
    g_assert_cmpuint(le32_to_cpu(c.max_srq_sge), >=, 4);
    g_assert_cmpuint(le32_to_cpu(c.max_fast_reg_page_list_len), >=, 1);
    g_assert_cmpuint(le32_to_cpu(c.max_reg_pages), ==,
                     le32_to_cpu(c.max_fast_reg_page_list_len));
    g_assert_cmpuint(le32_to_cpu(c.num_counters), ==,
                     VIRTIO_RDMA_NUM_COUNTERS);
    g_assert_cmphex(le64_to_cpu(c.mr_page_sizes) & 4096, ==, 4096);
    g_assert_cmpuint(le32_to_cpu(c.max_pi_fast_reg_page_list_len), ==, 0);
    g_assert_cmpuint(le16_to_cpu(c.max_pkeys), ==, 1);
    g_assert_cmpuint(c.local_ca_ack_delay, ==, 15);
    g_assert_cmpuint(le32_to_cpu(c.max_inline_data), >=, 64);
    g_assert_cmpmem(c.reserved, sizeof(c.reserved), zero, sizeof(zero));
    g_assert_cmpmem(c.sys_image_guid, 8, guid, sizeof(guid));
    caps = le64_to_cpu(c.device_cap_flags);
    g_assert_true(caps & VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS);
    g_assert_true(caps & VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN);
    g_assert_true(caps & VIRTIO_RDMA_CAP_SYS_IMAGE_GUID);
}

static void test_mac_and_mtu(void)
{
    static const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x01 };
    QRdma *d = test_device();
    struct virtio_rdma_config c;

    qrdma_get_config(d, &c);
    g_assert_cmpmem(c.mac, sizeof(c.mac), mac, sizeof(mac));
    g_assert_cmpuint(le16_to_cpu(c.mtu), >=, 1280);
}

static void test_writes_are_ignored(void)
{
    QRdma *d = test_device();
    struct virtio_rdma_config before, after;

    qrdma_get_config(d, &before);
    for (uint32_t at = 0; at < sizeof(before); at += 4) {
        qrdma_config_write(d, at, 4, 0xffffffff);
        qrdma_config_write(d, at + 1, 1, 0);
    }
    qrdma_get_config(d, &after);
    g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
}

const QRdmaTest config_tests[] = {
    { "pci-identity", test_pci_identity },
    { "reads-of-any-size-at-any-offset", test_reads_of_any_size_at_any_offset },
    { "reads-past-the-end", test_reads_past_the_end },
    { "values", test_values },
    { "mac-and-mtu", test_mac_and_mtu },
    { "writes-are-ignored", test_writes_are_ignored },
    {}
};
