// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device's counters: their names, and some of them as the port counters of
 * IBTA 16.1, which performance management (PMA) queries by MAD.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "device.h"

/* IBTA counts data in units of four octets. */
#define PMA_DATA_UNIT		4
#define PMA_CLASS_VERSION	1

static const struct rdma_stat_desc vrdma_counters[VIRTIO_RDMA_NUM_COUNTERS] = {
	[VIRTIO_RDMA_TX_PACKETS].name = "tx_packets",
	[VIRTIO_RDMA_TX_BYTES].name = "tx_bytes",
	[VIRTIO_RDMA_RX_PACKETS].name = "rx_packets",
	[VIRTIO_RDMA_RX_BYTES].name = "rx_bytes",
	[VIRTIO_RDMA_LOOPBACK_PACKETS].name = "loopback_packets",
	[VIRTIO_RDMA_RX_ICRC_ERRORS].name = "rx_icrc_errors",
	[VIRTIO_RDMA_RX_MALFORMED].name = "rx_malformed",
	[VIRTIO_RDMA_RX_DROPPED].name = "rx_dropped",
	[VIRTIO_RDMA_RX_DUPLICATES].name = "rx_duplicates",
	[VIRTIO_RDMA_RX_OUT_OF_SEQUENCE].name = "rx_out_of_sequence",
	[VIRTIO_RDMA_RETRANSMITS].name = "retransmits",
	[VIRTIO_RDMA_TIMEOUTS].name = "timeouts",
	[VIRTIO_RDMA_RNR_NAKS_SENT].name = "rnr_naks_sent",
	[VIRTIO_RDMA_RNR_NAKS_RECEIVED].name = "rnr_naks_received",
	[VIRTIO_RDMA_NAKS_SENT].name = "naks_sent",
	[VIRTIO_RDMA_NAKS_RECEIVED].name = "naks_received",
	[VIRTIO_RDMA_BAD_PKEY].name = "bad_pkey",
	[VIRTIO_RDMA_BAD_QKEY].name = "bad_qkey",
	[VIRTIO_RDMA_TX_MCAST_PACKETS].name = "tx_mcast_packets",
	[VIRTIO_RDMA_RX_MCAST_PACKETS].name = "rx_mcast_packets",
};

/* Those that the device has for each QP */
static const u32 vrdma_qp_counters =
	BIT(VIRTIO_RDMA_TX_PACKETS) | BIT(VIRTIO_RDMA_TX_BYTES) |
	BIT(VIRTIO_RDMA_RX_PACKETS) | BIT(VIRTIO_RDMA_RX_BYTES) |
	BIT(VIRTIO_RDMA_LOOPBACK_PACKETS) | BIT(VIRTIO_RDMA_RX_DUPLICATES) |
	BIT(VIRTIO_RDMA_RX_OUT_OF_SEQUENCE) | BIT(VIRTIO_RDMA_RETRANSMITS) |
	BIT(VIRTIO_RDMA_TIMEOUTS) | BIT(VIRTIO_RDMA_RNR_NAKS_SENT) |
	BIT(VIRTIO_RDMA_RNR_NAKS_RECEIVED) | BIT(VIRTIO_RDMA_NAKS_SENT) |
	BIT(VIRTIO_RDMA_NAKS_RECEIVED) | BIT(VIRTIO_RDMA_BAD_QKEY);

/* The number of counters that both the device has and this driver knows. */
u32 vrdma_counters_known(const struct vrdma_dev *dev)
{
	return min_t(u32, dev->num_counters, ARRAY_SIZE(vrdma_counters));
}

int vrdma_counters_query(struct vrdma_dev *dev, u32 port, u64 *to)
{
	struct virtio_rdma_query_counters_req req = { .port = port };
	__le64 rsp[VRDMA_MAX_COUNTERS];
	int ret;
	u32 i;

	ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_QUERY_COUNTERS, &req, sizeof(req),
			 rsp, dev->num_counters * sizeof(*rsp));
	if (ret)
		return ret;
	for (i = 0; i < vrdma_counters_known(dev); i++)
		to[i] = le64_to_cpu(rsp[i]);
	return 0;
}

/*
 * Room for their values. Those of QPs stand at the same places, as the RDMA
 * core adds them to those of the port; what QPs do not count is not shown.
 */
struct rdma_hw_stats *vrdma_counters_alloc(struct vrdma_dev *dev, bool of_qp)
{
	struct rdma_hw_stats *stats;
	int i;

	stats = rdma_alloc_hw_stats_struct(vrdma_counters,
					   vrdma_counters_known(dev),
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	if (!stats || !of_qp)
		return stats;
	for (i = 0; i < stats->num_counters; i++) {
		if (!(vrdma_qp_counters & BIT(i)))
			set_bit(i, stats->is_disabled);
	}
	return stats;
}

static __be32 vrdma_pma_u32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

static void vrdma_pma_fill_counters(struct ib_pma_portcounters *to,
				    const u64 *value)
{
	u64 tx_data = value[VIRTIO_RDMA_TX_BYTES] / PMA_DATA_UNIT;
	u64 rx_data = value[VIRTIO_RDMA_RX_BYTES] / PMA_DATA_UNIT;
	u64 errors = value[VIRTIO_RDMA_RX_ICRC_ERRORS] +
		     value[VIRTIO_RDMA_RX_MALFORMED];

	to->port_xmit_data = vrdma_pma_u32(tx_data);
	to->port_rcv_data = vrdma_pma_u32(rx_data);
	to->port_xmit_packets = vrdma_pma_u32(value[VIRTIO_RDMA_TX_PACKETS]);
	to->port_rcv_packets = vrdma_pma_u32(value[VIRTIO_RDMA_RX_PACKETS]);
	to->port_rcv_errors = cpu_to_be16(min_t(u64, errors, U16_MAX));
}

static void vrdma_pma_fill_counters_ext(struct ib_pma_portcounters_ext *to,
					const u64 *value)
{
	u64 tx_data = value[VIRTIO_RDMA_TX_BYTES] / PMA_DATA_UNIT;
	u64 rx_data = value[VIRTIO_RDMA_RX_BYTES] / PMA_DATA_UNIT;
	u64 tx = value[VIRTIO_RDMA_TX_PACKETS];
	u64 rx = value[VIRTIO_RDMA_RX_PACKETS];
	u64 tx_mcast = value[VIRTIO_RDMA_TX_MCAST_PACKETS];
	u64 rx_mcast = value[VIRTIO_RDMA_RX_MCAST_PACKETS];

	to->port_xmit_data = cpu_to_be64(tx_data);
	to->port_rcv_data = cpu_to_be64(rx_data);
	to->port_xmit_packets = cpu_to_be64(tx);
	to->port_rcv_packets = cpu_to_be64(rx);
	to->port_unicast_xmit_packets = cpu_to_be64(tx - tx_mcast);
	to->port_unicast_rcv_packets = cpu_to_be64(rx - rx_mcast);
	to->port_multicast_xmit_packets = cpu_to_be64(tx_mcast);
	to->port_multicast_rcv_packets = cpu_to_be64(rx_mcast);
}

static int vrdma_process_mad(struct ib_device *ibdev, int flags, u32 port,
			     const struct ib_wc *wc, const struct ib_grh *grh,
			     const struct ib_mad *in, struct ib_mad *out,
			     size_t *out_size, u16 *out_pkey_index)
{
	const u16 unknown = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	u64 value[VIRTIO_RDMA_NUM_COUNTERS] = {};
	struct ib_class_port_info *info;
	void *data = ((struct ib_pma_mad *)out)->data;

	/* Other MADs are for the agents that have registered for them. */
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;

	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		info = data;
		info->base_version = IB_MGMT_BASE_VERSION;
		info->class_version = PMA_CLASS_VERSION;
		info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	case IB_PMA_PORT_COUNTERS:
		if (vrdma_counters_query(to_vdev(ibdev), port, value))
			return IB_MAD_RESULT_FAILURE;
		vrdma_pma_fill_counters(data, value);
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		if (vrdma_counters_query(to_vdev(ibdev), port, value))
			return IB_MAD_RESULT_FAILURE;
		vrdma_pma_fill_counters_ext(data, value);
		break;
	default:
		out->mad_hdr.status = cpu_to_be16(unknown);
		break;
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static const struct ib_device_ops vrdma_counter_ops = {
	.process_mad = vrdma_process_mad,
};

void vrdma_counters_init(struct vrdma_dev *dev)
{
	if (dev->num_counters)
		ib_set_device_ops(&dev->ibdev, &vrdma_counter_ops);
}
