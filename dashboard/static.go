package dashboard

import (
	"encoding/json"
	"html/template"
	"strings"
)

// Static is a dashboard as files, for a folder of any web server, whose API is elsewhere.
type Static struct {
	assets  *assets
	config  pageConfig
	scripts []string
}

// NewStatic returns a dashboard as files. Its pages load scripts, classic ones, before all others. Their URLs are
// relative to the dashboard's folder. They direct the requests to the API below that folder elsewhere.
func NewStatic(title string, scripts ...string) (*Static, error) {
	files, err := loadAssets(embedded())
	if err != nil {
		return nil, err
	}
	return &Static{assets: files, scripts: scripts, config: pageConfig{Title: title, Links: []Link{}, Version: version(), Build: files.build, Stream: files.named("stream", ".js")}}, nil
}

// Files returns the content of all files by their path in the folder. index.html is the page for the folder itself.
func (s *Static) Files() (map[string][]byte, error) {
	index, err := s.Page(0)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(s.config)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{"index.html": index, "dashboard.json": config}
	for name, c := range s.assets.content {
		all["assets/"+name] = c.plain
	}
	return all, nil
}

// Page returns the document for a path with so many slashes below the folder, such as 1 for tasks/ID.
func (s *Static) Page(slashes int) ([]byte, error) {
	return document(s.config, s.assets, slashes, s.scripts)
}

// IsPage reports whether the dashboard has a page at a path below its folder.
func IsPage(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return path == "" || pages[first]
}

// document returns the only document, for a path below so many folders. Its URLs are relative to that path.
func document(config pageConfig, files *assets, depth int, scripts []string) ([]byte, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	root := strings.Repeat("../", depth)
	if root == "" {
		root = "./"
	}
	var doc strings.Builder
	err = page.Execute(&doc, map[string]any{
		"Config": string(raw), "Root": root, "Title": config.Title, "Scripts": scripts,
		"Theme": files.named("theme", ".js"), "Style": files.named("style", ".css"), "App": files.named("app", ".js"), "Icon": files.named("icon", ".svg"),
	})
	return []byte(doc.String()), err
}

// page is the only document.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en" data-config="{{.Config}}" data-root="{{.Root}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{with .Title}}{{.}} · {{end}}Weaver</title>
<script src="{{.Root}}assets/{{.Theme}}"></script>
{{range .Scripts}}<script src="{{$.Root}}{{.}}"></script>
{{end}}<link rel="stylesheet" href="{{.Root}}assets/{{.Style}}">
<link rel="icon" href="{{.Root}}assets/{{.Icon}}">
<script type="module" src="{{.Root}}assets/{{.App}}"></script>
</head>
<body>
<noscript>Weaver's dashboard needs JavaScript. The command "weaver" shows the same in a terminal.</noscript>
<div id="app"></div>
</body>
</html>
`))
