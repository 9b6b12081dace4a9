// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// imageName wants a registry in the name; one without would become that of a public registry.
var imageName = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+)(:[0-9]+)?(/[a-z0-9._-]+)+:[A-Za-z0-9_.-]+$`)

const imagePath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageSpec is what a container image is made of. A layer is a tar file, or SOURCE=/PATH: a file or folder and where it
// goes.
type imageSpec struct {
	name          string
	env           []string
	user, workdir string
	entrypoint    []string
	layers        []string
}

func makeImage(args []string) error {
	f := newFlags("env", "user", "workdir", "entrypoint")
	f.positional = math.MaxInt
	if err := f.parse(args); err != nil {
		return err
	}
	if len(f.rest) < 3 {
		return errors.New("make-image: say which archive, name and layers, for example: " +
			"cluster make-image train.tar localhost/train:1 rootfs.tar src=/workspace")
	}
	return writeImage(f.rest[0], imageSpec{
		name: f.rest[1], env: f.values["env"], user: f.value("user", ""), workdir: f.value("workdir", "/"),
		entrypoint: f.values["entrypoint"], layers: f.rest[2:],
	})
}

// writeImage writes the image as an archive that containerd and docker load. Layers are streamed, each to where it stays,
// so that one may be larger than the memory. The same input gives the same bytes.
func writeImage(archive string, spec imageSpec) (err error) {
	if !imageName.MatchString(spec.name) {
		return fmt.Errorf("make image: %q is not REGISTRY/NAME:TAG, for example localhost/train:1", spec.name)
	}
	out, err := os.CreateTemp(filepath.Dir(archive), filepath.Base(archive)+".tmp")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err == nil {
			err = os.Rename(out.Name(), archive)
		}
		if err != nil {
			os.Remove(out.Name())
			err = fmt.Errorf("make image %s: %w", spec.name, err)
		}
	}()
	var names, digests []string
	for i, layer := range spec.layers {
		name := "layer-" + strconv.Itoa(i) + ".tar"
		digest, err := appendLayer(out, name, layer)
		if err != nil {
			return fmt.Errorf("layer %s: %w", layer, err)
		}
		names, digests = append(names, name), append(digests, "sha256:"+digest)
	}
	env := spec.env
	if !strings.Contains("\n"+strings.Join(env, "\n"), "\nPATH=") {
		env = append([]string{imagePath}, env...)
	}
	config, err := json.Marshal(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"rootfs": object{"type": "layers", "diff_ids": digests},
		"config": object{"Env": env, "User": spec.user, "WorkingDir": spec.workdir, "Entrypoint": spec.entrypoint},
	})
	if err != nil {
		return err
	}
	hash := sha256.Sum256(config)
	configName := hex.EncodeToString(hash[:]) + ".json"
	manifest, err := json.Marshal([]object{{"Config": configName, "RepoTags": []string{spec.name}, "Layers": names}})
	if err != nil {
		return err
	}
	end := tar.NewWriter(out)
	for _, file := range []struct {
		name string
		data []byte
	}{{configName, config}, {"manifest.json", manifest}} {
		if err := end.WriteHeader(archiveHeader(file.name, int64(len(file.data)))); err != nil {
			return err
		}
		if _, err := end.Write(file.data); err != nil {
			return err
		}
	}
	return end.Close()
}

func archiveHeader(name string, size int64) *tar.Header {
	return &tar.Header{
		Name: name, Size: size, Mode: 0o644, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	}
}

const tarBlock = 512

// appendLayer adds a layer to the archive and returns its digest. The header, which tells the size, is written last.
func appendLayer(out *os.File, name, layer string) (string, error) {
	begin, err := out.Seek(tarBlock, io.SeekCurrent)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	size, err := copyLayer(io.MultiWriter(out, hash), layer)
	if err != nil {
		return "", err
	}
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(archiveHeader(name, size)); err != nil {
		return "", err
	}
	if _, err := out.WriteAt(header.Bytes(), begin-tarBlock); err != nil {
		return "", err
	}
	_, err = out.Write(make([]byte, -size&(tarBlock-1)))
	return hex.EncodeToString(hash.Sum(nil)), err
}

// copyLayer writes the layer's tar and returns its size.
func copyLayer(to io.Writer, layer string) (int64, error) {
	if at := strings.LastIndex(layer, "=/"); at >= 0 {
		count := &countingWriter{to: to}
		err := packFolder(count, layer[:at], layer[at+1:])
		return count.size, err
	}
	file, err := os.Open(layer)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	magic := make([]byte, 5)
	if _, err := file.ReadAt(magic, 257); err != nil || string(magic) != "ustar" {
		return 0, errors.New("it is not an uncompressed tar file")
	}
	return io.CopyBuffer(to, file, make([]byte, 1<<20))
}

type countingWriter struct {
	to   io.Writer
	size int64
}

func (w *countingWriter) Write(data []byte) (int, error) {
	n, err := w.to.Write(data)
	w.size += int64(n)
	return n, err
}

// packFolder writes a tar of the file or folder `source` as it is to stand at `inside`, all of it root's. Files keep their
// times: Python trusts what it has compiled only beside a source of the time it knows.
func packFolder(to io.Writer, source, inside string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	pack := tar.NewWriter(to)
	type inode struct{ device, number uint64 }
	links := map[inode]string{}
	buffer := make([]byte, 1<<20)
	err = filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Join(inside, filepath.ToSlash(relative)), "/")
		if name == "" || info.Mode()&fs.ModeSocket != 0 {
			return nil // The root folder is there in any case, and a socket is nothing without its server.
		}
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return err
		}
		header.Name = name
		if info.IsDir() {
			header.Name += "/"
		}
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "root", "root"
		header.ModTime, header.AccessTime, header.ChangeTime = info.ModTime().Truncate(time.Second), time.Time{}, time.Time{}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
			id := inode{uint64(stat.Dev), stat.Ino}
			if first, known := links[id]; known {
				header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
				return pack.WriteHeader(header)
			}
			links[id] = name
		}
		if err := pack.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.Open(file)
		if err != nil {
			return err
		}
		defer data.Close()
		_, err = io.CopyBuffer(pack, data, buffer)
		return err
	})
	return errors.Join(err, pack.Close())
}
