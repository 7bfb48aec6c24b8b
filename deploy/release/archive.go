package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// packed is a file of an archive.
type packed struct {
	name, path string
	mode       int64
}

// writeArchive packs the files into a folder of a .tar.gz. All of them have this time, belong
// to root, and stand in the order given, so that equal files make equal archives.
func writeArchive(path, folder string, at time.Time, files []packed) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	directory := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Uname: "root", Gname: "root"}
	if err := archive.WriteHeader(directory); err != nil {
		return err
	}
	for _, file := range files {
		if err := addFile(archive, folder, at, file); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func addFile(archive *tar.Writer, folder string, at time.Time, file packed) error {
	in, err := os.Open(file.path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	err = archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: folder + "/" + file.name, Mode: file.mode,
		Size: info.Size(), ModTime: at, Uname: "root", Gname: "root",
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}
