/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device as a whole: its port and NIC, its configuration, and its
 * virtqueues.
 */
#ifndef VRDMA_DEVICE_H
#define VRDMA_DEVICE_H

#include "queue.h"

/* pd.c */
int vrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int vrdma_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrdma_destroy_ah(struct ib_ah *ibah, u32 flags);

/* port.c */
int vrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
void vrdma_get_dev_fw_str(struct ib_device *ibdev, char *str);
int vrdma_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr);
int vrdma_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable);
enum rdma_link_layer vrdma_get_link_layer(struct ib_device *ibdev, u32 port);
int vrdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int vrdma_add_gid(const struct ib_gid_attr *attr, void **context);
int vrdma_del_gid(const struct ib_gid_attr *attr, void **context);

/* netdev.c */
int vrdma_netdev_init(struct vrdma_dev *dev);
void vrdma_netdev_exit(struct vrdma_dev *dev);
void vrdma_port_work(struct work_struct *work);

/* sysfs.c */
extern const struct attribute_group vrdma_sysfs_group;

/* counters.c */
u32 vrdma_counters_known(const struct vrdma_dev *dev);
int vrdma_counters_query(struct vrdma_dev *dev, u32 port, u64 *to);
struct rdma_hw_stats *vrdma_counters_alloc(struct vrdma_dev *dev, bool of_qp);
void vrdma_counters_init(struct vrdma_dev *dev);

/* stats.c */
void vrdma_stats_init(struct vrdma_dev *dev);

/* config.c */
int vrdma_config_read(struct vrdma_dev *dev);
void vrdma_config_free(struct vrdma_dev *dev);

/* vqs.c */
int vrdma_vqs_init(struct vrdma_dev *dev);
void vrdma_vqs_free(struct vrdma_dev *dev);
void vrdma_vqs_reset(struct vrdma_dev *dev);

/* fatal.c */
void vrdma_fatal_work(struct work_struct *work);
void vrdma_wake_work(struct work_struct *work);

#endif /* VRDMA_DEVICE_H */
