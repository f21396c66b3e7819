// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page table of a user region, or of a direct queue. The device copies it,
 * so it exists during one command only.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "mem.h"

#define ENTRIES (VRDMA_PAGE_SIZE / sizeof(__le64))
#define MAX_LEVELS 3

/* Where the pages come from: a region, or else pages of the kernel */
struct vrdma_table_source {
	struct ib_umem *umem;
	const dma_addr_t *list;
};

/* A page of the tree; it is mapped for DMA when all its entries are set. */
struct vrdma_table_node {
	__le64 *entries;
	dma_addr_t dma;
	bool mapped;
};

/*
 * The largest size of a region that fits at any alignment, with the smallest
 * pages: it may begin and end in the middle of a page.
 */
u64 vrdma_table_max_size(void)
{
	u64 pages = 1;
	int i;

	for (i = 0; i < MAX_LEVELS; i++)
		pages *= ENTRIES;
	return (pages - 1) << VRDMA_PAGE_SHIFT;
}

void vrdma_table_free(struct vrdma_dev *dev, struct vrdma_table *table)
{
	u32 i;

	for (i = 0; i < table->num_nodes; i++) {
		struct vrdma_table_node *node = &table->nodes[i];

		if (node->mapped)
			dma_unmap_single(dev->dma_dev, node->dma,
					 VRDMA_PAGE_SIZE, DMA_TO_DEVICE);
		kfree(node->entries);
	}
	kvfree(table->nodes);
}

/* Allocate the nodes for @count entries. */
static int vrdma_table_alloc_nodes(struct vrdma_table_node *nodes, u32 count)
{
	u32 i;

	for (i = 0; i < DIV_ROUND_UP(count, ENTRIES); i++) {
		nodes[i].entries = kzalloc(VRDMA_PAGE_SIZE, GFP_KERNEL);
		if (!nodes[i].entries)
			return -ENOMEM;
	}
	return 0;
}

static int vrdma_table_map_nodes(struct vrdma_dev *dev,
				 struct vrdma_table_node *nodes, u32 count)
{
	u32 i;

	for (i = 0; i < DIV_ROUND_UP(count, ENTRIES); i++) {
		nodes[i].dma = dma_map_single(dev->dma_dev, nodes[i].entries,
					      VRDMA_PAGE_SIZE, DMA_TO_DEVICE);
		if (dma_mapping_error(dev->dma_dev, nodes[i].dma))
			return -ENOMEM;
		nodes[i].mapped = true;
	}
	return 0;
}

static void vrdma_table_set_entry(struct vrdma_table_node *nodes, u32 i,
				  u64 addr)
{
	nodes[i / ENTRIES].entries[i % ENTRIES] = cpu_to_le64(addr);
}

static void vrdma_table_set_leaves(struct vrdma_table *table,
				   const struct vrdma_table_source *source)
{
	struct ib_block_iter iter;
	u32 i = 0;
	u64 addr;

	if (source->umem) {
		rdma_umem_for_each_dma_block(source->umem, &iter,
					     1UL << table->page_shift) {
			addr = rdma_block_iter_dma_address(&iter);
			vrdma_table_set_entry(table->nodes, i++, addr);
		}
		return;
	}
	for (; i < table->npages; i++) {
		addr = source->list[i / VRDMA_PAGES_PER_PAGE] +
		       i % VRDMA_PAGES_PER_PAGE * VRDMA_PAGE_SIZE;
		vrdma_table_set_entry(table->nodes, i, addr);
	}
}

static u32 vrdma_table_count_nodes(u32 count)
{
	u32 nodes = 0;

	do {
		count = DIV_ROUND_UP(count, ENTRIES);
		nodes += count;
	} while (count > 1);
	return nodes;
}

/* Build the tree from its lowest level, the list of pages, up to the root. */
static int vrdma_table_make(struct vrdma_dev *dev, struct vrdma_table *table,
			    const struct vrdma_table_source *source)
{
	struct vrdma_table_node *nodes, *below = NULL;
	u32 count = table->npages;
	int ret;

	table->num_nodes = vrdma_table_count_nodes(count);
	table->nodes = kvcalloc(table->num_nodes, sizeof(*table->nodes),
				GFP_KERNEL);
	if (!table->nodes)
		return -ENOMEM;
	nodes = table->nodes;
	do {
		u32 i = 0;

		ret = vrdma_table_alloc_nodes(nodes, count);
		if (ret)
			goto err;
		if (!below)
			vrdma_table_set_leaves(table, source);
		else
			for (; i < count; i++)
				vrdma_table_set_entry(nodes, i, below[i].dma);
		ret = vrdma_table_map_nodes(dev, nodes, count);
		if (ret)
			goto err;
		below = nodes;
		count = DIV_ROUND_UP(count, ENTRIES);
		nodes += count;
		table->levels++;
	} while (count > 1);

	table->pages = below->dma;
	return 0;

err:
	vrdma_table_free(dev, table);
	return ret;
}

/*
 * Build the table of a region that starts at the address @iova, with the
 * largest pages that the memory allows.
 */
int vrdma_table_init(struct vrdma_dev *dev, struct vrdma_table *table,
		     struct ib_umem *umem, u64 iova)
{
	const struct vrdma_table_source source = { .umem = umem };
	unsigned long page_size;

	memset(table, 0, sizeof(*table));
	page_size = ib_umem_find_best_pgsz(umem, dev->mr_page_sizes, iova);
	if (!page_size)
		return -EINVAL;
	table->page_shift = ilog2(page_size);
	table->npages = ib_umem_num_dma_blocks(umem, page_size);
	return vrdma_table_make(dev, table, &source);
}

/* Build the table of @npages pages of the device in the pages of @list. */
int vrdma_table_init_list(struct vrdma_dev *dev, struct vrdma_table *table,
			  const dma_addr_t *list, u32 npages)
{
	const struct vrdma_table_source source = { .list = list };

	memset(table, 0, sizeof(*table));
	table->page_shift = VRDMA_PAGE_SHIFT;
	table->npages = npages;
	return vrdma_table_make(dev, table, &source);
}
