package cli

import (
	"context"

	"github.com/goweaver/weaver"
)

// artifactAcceptCmd is the verb artifact accept-bucket.
type artifactAcceptCmd struct {
	auditFlags
}

// Help is shown by artifact accept-bucket --help.
func (artifactAcceptCmd) Help() string {
	return "A store remembers its first bucket by an ID in the bucket, and refuses programs with another bucket, which would " +
		"miss its values. A folder or S3 prefix that is moved or copied as a whole keeps its ID."
}

// acceptedBucket is the JSON output of artifact accept-bucket.
type acceptedBucket struct {
	ID    string `json:"id"`
	Place string `json:"place"`
}

// Run implements the verb.
func (c *artifactAcceptCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		if _, err := s.hasBucket(); err != nil {
			return err
		}
		id, place, err := client.AcceptBucket(ctx, c.options()...)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(acceptedBucket{id, place})
		}
		s.printf("The blobs of namespace %q are in the bucket %s at %s now.\n", client.Namespace(), id, place)
		return nil
	})
}
