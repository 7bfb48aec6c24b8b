package doctor

import (
	"fmt"
	"syscall"
)

// File systems by the number that statfs(2) gives.
var fileSystems = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9p", 0x00c36400: "Ceph",
	0x5346414f: "AFS", 0x0bd00bd0: "Lustre", 0x01021994: "tmpfs", 0x794c7630: "overlay", 0xef53: "ext4", 0x58465342: "XFS",
	0x9123683e: "Btrfs", 0x2fc12fc1: "ZFS", 0xf2f52010: "F2FS", 0x65735546: "FUSE",
}

var networkFileSystems = map[string]bool{
	"NFS": true, "SMB": true, "CIFS": true, "SMB2": true, "9p": true, "Ceph": true, "AFS": true, "Lustre": true,
}

// statFS tells what a folder is on and how many bytes are free there for users.
func statFS(folder string) (kind string, free uint64, err error) {
	var at syscall.Statfs_t
	if err := syscall.Statfs(folder, &at); err != nil {
		return "", 0, err
	}
	number := int64(uint32(at.Type))
	kind, ok := fileSystems[number]
	if !ok {
		kind = fmt.Sprintf("a file system of type %#x", number)
	}
	return kind, at.Bavail * uint64(at.Bsize), nil
}
