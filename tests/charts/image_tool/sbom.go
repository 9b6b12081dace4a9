// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"time"
)

// What SPDX 2.3 demands of a document without files, and the fields that we use besides.
type document struct {
	SPDXVersion       string
	DataLicense       string
	SPDXID            string
	Name              string
	DocumentNamespace string
	CreationInfo      struct {
		Created  time.Time
		Creators []string
	}
	Packages []struct {
		SPDXID, Name, VersionInfo, PrimaryPackagePurpose, Supplier, DownloadLocation string
		LicenseConcluded, LicenseDeclared, CopyrightText, SourceInfo, Comment        string
		FilesAnalyzed                                                                *bool
		ExternalRefs                                                                 []struct{ ReferenceCategory, ReferenceType, ReferenceLocator string }
	}
	Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
}

var (
	idPattern   = regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)
	purlPattern = regexp.MustCompile(`^pkg:(generic|deb/debian)/[A-Za-z0-9.%-]+@[A-Za-z0-9.~%-]+\?[a-z]+=[A-Za-z0-9.&=-]+$`)
	linkPattern = regexp.MustCompile(`^(DESCRIBES|DYNAMIC_LINK|STATIC_LINK|DEPENDS_ON)$`)
)

// listPackages prints "NAME VERSION LINK" of each package, LINK being its relationship, after it has found the document
// right.
func listPackages(path string) error {
	content, err := os.Open(path)
	if err != nil {
		return err
	}
	defer content.Close()
	var d document
	decoder := json.NewDecoder(content)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return err
	}
	var problems []error
	expect := func(holds bool, format string, values ...any) {
		if !holds {
			problems = append(problems, fmt.Errorf(format, values...))
		}
	}
	space, err := url.Parse(d.DocumentNamespace)
	expect(err == nil && space.IsAbs() && space.Fragment == "", "documentNamespace %q", d.DocumentNamespace)
	expect(d.SPDXVersion == "SPDX-2.3" && d.DataLicense == "CC0-1.0" && d.SPDXID == "SPDXRef-DOCUMENT", "head of the document")
	expect(d.Name != "" && !d.CreationInfo.Created.IsZero() && len(d.CreationInfo.Creators) > 0, "name, time or creators")

	links := map[string]string{"SPDXRef-DOCUMENT": ""}
	for _, p := range d.Packages {
		_, again := links[p.SPDXID]
		expect(idPattern.MatchString(p.SPDXID) && !again, "SPDXID %q of %s", p.SPDXID, p.Name)
		links[p.SPDXID] = ""
		expect(p.FilesAnalyzed != nil && !*p.FilesAnalyzed, "filesAnalyzed of %s", p.Name)
		for _, text := range []string{p.Name, p.VersionInfo, p.PrimaryPackagePurpose, p.Supplier, p.DownloadLocation,
			p.LicenseConcluded, p.LicenseDeclared, p.CopyrightText, p.SourceInfo, p.Comment} {
			expect(text != "", "an empty field of %s", p.Name)
		}
		expect(len(p.ExternalRefs) == 1 && p.ExternalRefs[0].ReferenceCategory == "PACKAGE-MANAGER" &&
			p.ExternalRefs[0].ReferenceType == "purl" && purlPattern.MatchString(p.ExternalRefs[0].ReferenceLocator),
			"externalRefs of %s: %v", p.Name, p.ExternalRefs)
	}
	for _, r := range d.Relationships {
		_, from := links[r.SPDXElementID]
		link, to := links[r.RelatedSPDXElement]
		expect(from && to && link == "" && linkPattern.MatchString(r.RelationshipType), "relationship %v", r)
		links[r.RelatedSPDXElement] = r.RelationshipType
	}
	for _, p := range d.Packages {
		expect(links[p.SPDXID] != "", "nothing relates to %s", p.Name)
		fmt.Println(p.Name, p.VersionInfo, links[p.SPDXID])
	}
	return errors.Join(problems...)
}
