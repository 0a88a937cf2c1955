module github.com/goweaver/weaver

go 1.26.0
