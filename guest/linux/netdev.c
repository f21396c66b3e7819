// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The NIC whose link and addresses the adapter uses: function 0 of the same PCI
 * slot, or a NIC with the same MAC address, whichever registers first. The NIC
 * may be removed and added while the adapter stays.
 */
#include <linux/etherdevice.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>

#include "device.h"

/* Does @netdev belong to the PCI device @parent, or to its virtio device? */
static bool vrdma_netdev_is_nic_of(const struct net_device *netdev,
				   const struct device *parent)
{
	const struct device *dev = netdev->dev.parent;

	return dev && (dev == parent || dev->parent == parent);
}

static bool vrdma_netdev_same_slot(struct vrdma_dev *dev,
				   const struct net_device *netdev)
{
	struct device *parent = dev->vdev->dev.parent;
	struct pci_dev *pci, *nic;
	bool same;

	if (!parent || !dev_is_pci(parent))
		return false;
	pci = to_pci_dev(parent);
	if (PCI_FUNC(pci->devfn) == 0)
		return false;
	nic = pci_get_slot(pci->bus, PCI_DEVFN(PCI_SLOT(pci->devfn), 0));
	if (!nic)
		return false;
	same = vrdma_netdev_is_nic_of(netdev, &nic->dev);
	pci_dev_put(nic);
	return same;
}

static bool vrdma_netdev_same_mac(struct vrdma_dev *dev,
				  const struct net_device *netdev)
{
	/* VLANs and bridges have a NIC's address, but no parent device. */
	return dev->have_mac && netdev->dev.parent &&
	       netdev->type == ARPHRD_ETHER &&
	       ether_addr_equal(netdev->dev_addr, dev->mac);
}

static bool vrdma_netdev_is_ours(struct vrdma_dev *dev,
				 const struct net_device *netdev)
{
	return vrdma_netdev_same_slot(dev, netdev) ||
	       vrdma_netdev_same_mac(dev, netdev);
}

/*
 * Programs look for the NIC of an adapter in the directory "net" of its PCI
 * function. The link leads to the directory that holds the NIC, not to the NIC
 * itself, so it stays right when that is renamed, and each network namespace
 * sees what is its own. The directory exists for as long as the NIC is
 * registered. With the RTNL held.
 */
static void vrdma_netdev_link(struct vrdma_dev *dev,
			      const struct net_device *netdev)
{
	struct device *parent = dev->ibdev.dev.parent;

	if (dev->netdev_linked)
		sysfs_remove_link(&parent->kobj, "net");
	dev->netdev_linked = netdev && dev_is_pci(parent) &&
			     !sysfs_create_link_nowarn(&parent->kobj,
						       netdev->dev.kobj.parent,
						       "net");
}

/* With the RTNL held. */
static void vrdma_netdev_set(struct vrdma_dev *dev, struct net_device *netdev)
{
	mutex_lock(&dev->netdev_lock);
	if (!ib_device_set_netdev(&dev->ibdev, netdev, VRDMA_PORT)) {
		dev->netdev = netdev;
		vrdma_netdev_link(dev, netdev);
	}
	mutex_unlock(&dev->netdev_lock);
}

/*
 * The NIC or the device has changed. Addresses that the NIC had before it was
 * bound become GIDs, and a new state of the port is reported as an event.
 */
void vrdma_port_work(struct work_struct *work)
{
	struct vrdma_dev *dev = container_of(work, struct vrdma_dev,
					     port_work);
	struct ib_port_attr attr = {};
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = VRDMA_PORT,
	};
	bool active;

	/* The device is being removed. */
	if (!READ_ONCE(dev->registered))
		return;
	if (vrdma_needs_reset(dev)) {
		vrdma_fatal(dev);
		return;
	}
	if (xchg(&dev->rescan, false))
		rdma_roce_rescan_device(&dev->ibdev);
	if (ib_query_port(&dev->ibdev, VRDMA_PORT, &attr))
		return;
	active = attr.state == IB_PORT_ACTIVE;
	if (active == dev->port_active)
		return;
	dev->port_active = active;
	event.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
}

static int vrdma_netdev_event(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	struct vrdma_dev *dev = container_of(nb, struct vrdma_dev, netdev_nb);
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);
	bool bound = READ_ONCE(dev->netdev) == netdev;

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_CHANGEADDR:
		if (!dev->netdev && vrdma_netdev_is_ours(dev, netdev)) {
			vrdma_netdev_set(dev, netdev);
			bound = true;
			WRITE_ONCE(dev->rescan, true);
		}
		break;
	case NETDEV_UNREGISTER:
		if (bound)
			vrdma_netdev_set(dev, NULL);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
		break;
	default:
		return NOTIFY_DONE;
	}
	if (bound && dev->registered)
		schedule_work(&dev->port_work);
	return NOTIFY_DONE;
}

/* A new notifier is called for all NICs that exist already. */
int vrdma_netdev_init(struct vrdma_dev *dev)
{
	dev->netdev_nb.notifier_call = vrdma_netdev_event;
	return register_netdevice_notifier(&dev->netdev_nb);
}

void vrdma_netdev_exit(struct vrdma_dev *dev)
{
	/* Work that runs from now on returns at once. */
	WRITE_ONCE(dev->registered, false);
	unregister_netdevice_notifier(&dev->netdev_nb);
	cancel_work_sync(&dev->port_work);
}
