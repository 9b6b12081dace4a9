// SPDX-License-Identifier: Apache-2.0

// Command archive packs a folder as a container image of one layer, without Docker. The file it writes is an OCI image
// layout and has the manifest.json of `docker save` too, so that every tool loads it: docker, podman, ctr, kind, skopeo.
//
// The same folder and arguments give the same bytes: entries are sorted, all files belong to root, and every time is
// SOURCE_DATE_EPOCH. Only compress/gzip may differ from one Go to the next; the image's ID, which is the digest of its
// configuration, counts the layer uncompressed and stays.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	configType   = "application/vnd.oci.image.config.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// What Go and the OCI specification call a machine, by what ELF calls it.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        *descriptor  `json:"config,omitempty"`
	Layers        []descriptor `json:"layers,omitempty"`
	Manifests     []descriptor `json:"manifests,omitempty"` // Of the index, which has the other two not.
}

type runConfig struct {
	User       string
	Entrypoint []string
	WorkingDir string
	Labels     map[string]string
}

type imageConfig struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []map[string]string `json:"history"`
}

// labels is a flag that may be repeated: KEY=VALUE.
type labels map[string]string

func (l labels) String() string { return "" }
func (l labels) Set(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return errors.New("expected KEY=VALUE")
	}
	l[key] = value
	return nil
}

func main() {
	digest, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// run writes the archive and returns the digest of the image's manifest, by which a registry will know it.
func run(arguments []string) (string, error) {
	flags := flag.NewFlagSet("archive", flag.ExitOnError)
	root := flags.String("root", "", "the `folder` that becomes the image's root")
	out := flags.String("out", "", "the `file` to write")
	name := flags.String("name", "", "the image's `name` with its tag")
	config := runConfig{WorkingDir: "/", Labels: labels{}}
	flags.StringVar(&config.User, "user", "", "`UID:GID` it runs as")
	entrypoint := flags.String("entrypoint", "", "the `program` it runs, an ELF file of the image")
	flags.Var(labels(config.Labels), "label", "a label, `KEY=VALUE`; may be repeated")
	flags.Parse(arguments)
	if *root == "" || *out == "" || *entrypoint == "" || !strings.Contains(filepath.Base(*name), ":") || flags.NArg() > 0 {
		return "", errors.New("needs -root, -out, -entrypoint and -name NAME:TAG; see archive -help")
	}
	config.Entrypoint = []string{*entrypoint}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH %q: expected seconds since 1970", os.Getenv("SOURCE_DATE_EPOCH"))
	}
	created := time.Unix(seconds, 0).UTC()
	architecture, err := architectureOf(filepath.Join(*root, *entrypoint))
	if err != nil {
		return "", err
	}
	layer, diffID, err := packLayer(*root, created)
	if err != nil {
		return "", fmt.Errorf("pack %s: %w", *root, err)
	}
	image := imageConfig{Created: created, Architecture: architecture, OS: "linux", Config: config}
	image.RootFS.Type = "layers"
	image.RootFS.DiffIDs = []string{diffID}
	image.History = []map[string]string{{"created": created.Format(time.RFC3339), "created_by": "grus charts/image/rootfs"}}
	files, digest, err := imageFiles(image, layer, *name)
	if err != nil {
		return "", err
	}
	// Under another name first: an archive that is cut short is never taken for one.
	if err := writeTar(*out+".part", files, created); err != nil {
		return "", err
	}
	return digest, os.Rename(*out+".part", *out)
}

func architectureOf(program string) (string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if name, known := architectures[file.Machine]; known {
		return name, nil
	}
	return "", fmt.Errorf("%s: the OCI name of %v is not known", program, file.Machine)
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// packLayer returns the compressed layer and the digest of the uncompressed one.
func packLayer(root string, modified time.Time) ([]byte, string, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	var plain hash.Hash = sha256.New()
	writer := tar.NewWriter(io.MultiWriter(compressed, plain))
	// WalkDir goes in the order of the names.
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		return addEntry(writer, root, path, modified)
	})
	for _, end := range []func() error{writer.Close, compressed.Close} {
		if err == nil {
			err = end()
		}
	}
	return packed.Bytes(), "sha256:" + hex.EncodeToString(plain.Sum(nil)), err
}

func addEntry(writer *tar.Writer, root, path string, modified time.Time) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	header := &tar.Header{Mode: int64(info.Mode().Perm()), ModTime: modified}
	if header.Name, err = filepath.Rel(root, path); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case info.Mode().IsRegular():
		header.Typeflag = tar.TypeReg
		header.Size = info.Size()
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is neither a file, a folder nor a symbolic link", path)
	}
	if err := writer.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(writer, content)
	return err
}

type file struct {
	name    string
	content []byte
}

// imageFiles returns the files of the archive in their order, and the digest of the image's manifest.
func imageFiles(image imageConfig, layer []byte, name string) ([]file, string, error) {
	var failed error
	encode := func(value any) []byte {
		text, err := json.Marshal(value)
		failed = errors.Join(failed, err)
		return text
	}
	var blobs []file
	blob := func(mediaType string, content []byte) descriptor {
		digest := digestOf(content)
		blobs = append(blobs, file{"blobs/sha256/" + strings.TrimPrefix(digest, "sha256:"), content})
		return descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(content))}
	}
	layerBlob := blob(layerType, layer)
	config := blob(configType, encode(image))
	configFile, layerFile := blobs[1].name, blobs[0].name
	top := blob(manifestType, encode(manifest{2, manifestType, &config, []descriptor{layerBlob}, nil}))
	top.Annotations = map[string]string{
		"io.containerd.image.name":          fullName(name),
		"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
	}
	docker := []map[string]any{{"Config": configFile, "RepoTags": []string{name}, "Layers": []string{layerFile}}}
	files := append([]file{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", encode(manifest{2, indexType, nil, nil, []descriptor{top}})},
		{"manifest.json", encode(docker)},
	}, blobs...)
	return files, top.Digest, failed
}

// fullName is the name as the kubelet asks containerd for it.
func fullName(name string) string {
	host, _, slash := strings.Cut(name, "/")
	switch {
	case !slash:
		return "docker.io/library/" + name
	case host == "localhost" || strings.ContainsAny(host, ".:"):
		return name
	}
	return "docker.io/" + name
}

func writeTar(path string, files []file, modified time.Time) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	writer := tar.NewWriter(out)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: 0o644, ModTime: modified}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := writer.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(writer.Close(), out.Close())
}
