/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the guest ejects its slot by registers of
 * ACPI, while the control queue has commands for more than one turn.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/main-loop.h"
#include "rdma-fuzz.h"
#include "system/address-spaces.h"

/* docs/specs/acpi_pci_hotplug.rst */
#define EJECT 0xcc8
#define SELECT 0xcd0

#define TABLE (FUZZ_TABLES + 0x2000)
#define ENTRIES 512
#define MIN_LIST_SHIFT 12
/* The ring has two descriptors for each command. */
#define MAX_COMMANDS (FUZZ_RING_SIZE / 2 - 1)

static void put_modify(RdmaQpState state)
{
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(fuzz_guest.qpn[FUZZ_QP_A]),
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = state,
    };

    fuzz_put_command(VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req));
}

/*
 * Register a region that takes several turns to read. All of its tables are the
 * same one.
 */
static void put_list(unsigned shift)
{
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(FUZZ_PDN),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(4096ull << shift),
        .pages = cpu_to_le64(TABLE),
        .npages = cpu_to_le32(1u << shift),
        .levels = cpu_to_le32(3),
    };
    uint64_t entries[ENTRIES];

    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = cpu_to_le64(TABLE);
    }
    fuzz_write(TABLE, entries, sizeof(entries));
    fuzz_put_command(VIRTIO_RDMA_CMD_REG_USER_MR, &req, sizeof(req));
}

/* Put commands of the input, and give the device some turns for them. */
void fuzz_op_deep(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    unsigned turns = sel >> 6;

    for (unsigned n = 1 + sel % MAX_COMMANDS; n; n--) {
        uint8_t what = in_u8(in);

        switch (what & 3) {
        case 0:
            put_list(MIN_LIST_SHIFT + (what >> 2) % 7);
            break;
        case 1:
            fuzz_put_any_command(in);
            break;
        case 2:
            put_modify(RDMA_QPS_SQD);
            break;
        case 3:
            put_modify(RDMA_QPS_RTS);
            break;
        }
    }
    fuzz_notify(&fuzz_guest.rdma, VIRTIO_RDMA_CTRL_VQ);
    while (turns-- && g_main_context_pending(NULL)) {
        main_loop_wait(true);
    }
}

void fuzz_op_eject(FuzzIn *in)
{
    uint32_t slots = cpu_to_le32(1), bus = 0;

    address_space_write(&address_space_io, SELECT, MEMTXATTRS_UNSPECIFIED,
                        &bus, sizeof(bus));
    address_space_write(&address_space_io, EJECT, MEMTXATTRS_UNSPECIFIED,
                        &slots, sizeof(slots));
    fuzz_settle();
}
