/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared region: addresses and rings of the driver, and the capabilities of
 * the device.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "int.h"

#define FW_VERSION (1ull << 32)
#define HW_VERSION 1
/* Address handles are the driver's own: it only counts them. */
#define MAX_AH 65536
/* 4.096 us << 15: what hardware adapters have. */
#define CA_ACK_DELAY 15

/*
 * The driver divides by max_qp and max_cq, so neither is 0. It divides by
 * max_srq only for an SRQ: 0 means that there are none. It refuses a max_uar
 * that is not a power of 2. pvrdma_conf_check() has checked the properties.
 */
static void put_caps(Pvrdma *s, PvrdmaCaps *caps)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    bool mem_mgt = rdma_hca_has_mem_mgt(&s->hca);
    RdmaPortAttr port = {};

    rdma_hca_port_get(&s->hca, &port);
    *caps = (PvrdmaCaps) {
        .fw_ver = cpu_to_le64(FW_VERSION),
        .max_mr_size = cpu_to_le64(l->max_mr_size),
        .page_size_cap = cpu_to_le64(RDMA_PAGE_SIZE),
        .vendor_id = cpu_to_le32(PVRDMA_PCI_VENDOR),
        .vendor_part_id = cpu_to_le32(PVRDMA_PCI_DEVICE),
        .hw_ver = cpu_to_le32(HW_VERSION),
        .max_qp = cpu_to_le32(l->max_qp),
        .max_qp_wr = cpu_to_le32(l->max_qp_wr),
        .max_sge = cpu_to_le32(l->max_send_sge),
        .max_sge_rd = cpu_to_le32(l->max_send_sge),
        .max_cq = cpu_to_le32(l->max_cq),
        .max_cqe = cpu_to_le32(l->max_cqe),
        .max_mr = cpu_to_le32(l->max_mr),
        .max_pd = cpu_to_le32(l->max_pd),
        .max_qp_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .max_res_rd_atom = cpu_to_le32(l->max_rd_atomic * l->max_qp),
        .max_qp_init_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .max_ah = cpu_to_le32(MAX_AH),
        .max_srq = cpu_to_le32(l->max_srq),
        .max_srq_wr = cpu_to_le32(l->max_srq_wr),
        .max_srq_sge = cpu_to_le32(l->max_srq_sge),
        .max_uar = cpu_to_le32(s->conf.max_uar),
        .gid_tbl_len = cpu_to_le32(l->gid_table_len),
        .max_pkeys = cpu_to_le16(1),
        .local_ca_ack_delay = CA_ACK_DELAY,
        .phys_port_cnt = 1,
        .atomic_ops = l->atomic_cap == RDMA_ATOMIC_NONE
                      ? 0 : PVRDMA_ATOMIC_CAS | PVRDMA_ATOMIC_FAA,
        .bmme_flags = mem_mgt ? PVRDMA_BMME : 0,
        .gid_types = PVRDMA_GID_TYPE_ROCE_V2,
        .max_fast_reg_page_list_len =
            cpu_to_le32(mem_mgt ? PVRDMA_MAX_PAGE_LIST : 0),
    };
    rdma_hca_guid_from_mac(caps->node_guid, port.mac);
    if (s->conf.sys_image_guid) {
        stq_be_p(caps->sys_image_guid, s->conf.sys_image_guid);
    } else {
        memcpy(caps->sys_image_guid, caps->node_guid,
               sizeof(caps->sys_image_guid));
    }
}

static bool is_page(const char *name, uint64_t addr)
{
    if (!addr || (addr & (RDMA_PAGE_SIZE - 1))) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: the address of %s, 0x%" PRIx64
                      ", is not that of a page\n", name, addr);
        return false;
    }
    return true;
}

static bool read_dsr(Pvrdma *s, uint64_t addr)
{
    PvrdmaDsr dsr;

    if (!rdma_hca_read_ram(pvrdma_ram(s), addr, &dsr, sizeof(dsr))) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: the shared region at 0x%"
                      PRIx64 " is not in RAM\n", addr);
        return false;
    }
    s->driver_version = le32_to_cpu(dsr.driver_version);
    s->request = le64_to_cpu(dsr.request);
    s->response = le64_to_cpu(dsr.response);
    if (pvrdma_version(s) >= PVRDMA_VERSION_HANDLES &&
        s->driver_version < PVRDMA_VERSION_HANDLES) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: the driver has version %u, but "
                      "the backend needs %u\n", s->driver_version,
                      PVRDMA_VERSION_HANDLES);
        return false;
    }
    return is_page("commands", s->request) && is_page("replies", s->response) &&
           pvrdma_notify_start(s, &dsr);
}

/*
 * Was an IOMMU of the machine added after this device? The device would use the
 * driver's addresses without translation.
 */
static bool has_late_iommu(Pvrdma *s)
{
    if (pci_device_iommu_address_space(PCI_DEVICE(s)) ==
        rdma_hca_dma_as(&s->hca)) {
        return false;
    }
    warn_report_once("pvrdma does not work, because the IOMMU of the machine "
                     "was added after it: on the command line, put the IOMMU "
                     "before pvrdma");
    return true;
}

/* The last driver may have left without a reset: reset now. */
void pvrdma_dsr_set(Pvrdma *s, uint64_t addr)
{
    PvrdmaCaps caps;

    pvrdma_reset(s);
    if (!(pci_get_word(s->parent_obj.config + PCI_COMMAND) &
          PCI_COMMAND_MASTER) ||
        has_late_iommu(s) || !is_page("the shared region", addr) ||
        !read_dsr(s, addr)) {
        return;
    }
    put_caps(s, &caps);
    if (rdma_hca_write_ram(pvrdma_ram(s), addr + offsetof(PvrdmaDsr, caps),
                           &caps, sizeof(caps))) {
        s->dsr = addr;
    }
}
