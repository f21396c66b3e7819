/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions and windows, the memory of direct queues, and user contexts.
 */
#ifndef VRDMA_MEM_H
#define VRDMA_MEM_H

#include <linux/sizes.h>
#include <rdma/ib_umem.h>

#include "ring.h"

/* The page lists of a region for fast registration take up to 4 MiB each. */
#define VRDMA_MAX_REG_PAGES (SZ_4M / sizeof(__le64))

/*
 * Memory of a queue: a page of counters, and slots. Or the shadow of a page of
 * doorbells
 */
struct vrdma_area {
	struct vrdma_buf *buf;
	u32 npages;			/* of the device */
	dma_addr_t dma[];		/* of the pages of buf */
};

struct vrdma_mr {
	struct ib_mr ibmr;
	u32 mrn;
	/* User regions */
	struct ib_umem *umem;
	int access;
	/* Fast registration, see fastreg.c */
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 npages;
	u32 list;
};

struct vrdma_mw {
	struct ib_mw ibmw;
	u32 mwn;
};

static inline struct vrdma_mr *to_vmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct vrdma_mr, ibmr);
}

static inline struct vrdma_mw *to_vmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct vrdma_mw, ibmw);
}

/*
 * Both keys of a region have the same value, unless they are a host adapter's.
 * The device returns an rkey only with remote access, but programs send the key
 * to peers and add the access right later.
 */
static inline void vrdma_mr_set_keys(const struct vrdma_dev *dev,
				     struct vrdma_mr *mr,
				     const struct virtio_rdma_mr_rsp *rsp)
{
	mr->mrn = le32_to_cpu(rsp->mrn);
	mr->ibmr.lkey = le32_to_cpu(rsp->lkey);
	mr->ibmr.rkey = dev->host_numbers ? le32_to_cpu(rsp->rkey)
					  : mr->ibmr.lkey;
}

/* table.c */
struct vrdma_table {
	dma_addr_t pages;		/* what the device gets */
	u32 npages;
	u32 page_shift;
	u32 levels;
	struct vrdma_table_node *nodes;
	u32 num_nodes;
};

u64 vrdma_table_max_size(void);
int vrdma_table_init(struct vrdma_dev *dev, struct vrdma_table *table,
		     struct ib_umem *umem, u64 iova);
int vrdma_table_init_list(struct vrdma_dev *dev, struct vrdma_table *table,
			  const dma_addr_t *list, u32 npages);
void vrdma_table_free(struct vrdma_dev *dev, struct vrdma_table *table);

/* area.c */
struct vrdma_area *vrdma_area_alloc(struct vrdma_dev *dev, u32 npages);
void vrdma_area_free(struct vrdma_dev *dev, struct vrdma_area *area);
int vrdma_area_table(struct vrdma_dev *dev, const struct vrdma_area *area,
		     struct vrdma_table *table);
u32 vrdma_slot_pages(u32 slots, u32 shift);

/* ucontext.c */
extern const struct uapi_definition vrdma_uapi_defs[];

int vrdma_alloc_ucontext(struct ib_ucontext *ibucontext,
			 struct ib_udata *udata);
int vrdma_query_ucontext(struct ib_ucontext *ibucontext,
			 struct uverbs_attr_bundle *attrs);
void vrdma_dealloc_ucontext(struct ib_ucontext *ibucontext);
void vrdma_disassociate_ucontext(struct ib_ucontext *ibucontext);
u32 vrdma_doorbell(struct ib_udata *udata);

/* fastreg.c */
struct ib_mr *vrdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg);
void vrdma_page_lists_free(struct vrdma_dev *dev, struct vrdma_mr *mr);
int vrdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset);
void vrdma_wqe_fill_reg_mr(const struct ib_reg_wr *wr,
			   struct virtio_rdma_sq_wqe *wqe);

/* mr.c */
struct ib_mr *vrdma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *vrdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access, VRDMA_DMAH_PARAM
				struct ib_udata *udata);
struct ib_mr *vrdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 virt_addr, int fd,
				       int access, VRDMA_DMAH_PARAM
				       struct vrdma_reg_dmabuf_arg *arg);
struct ib_mr *vrdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 virt_addr, int access,
				  struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* mw.c */
extern const struct ib_device_ops vrdma_mw_ops;

#endif /* VRDMA_MEM_H */
