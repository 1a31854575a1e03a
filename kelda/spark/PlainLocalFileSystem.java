package kelda;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system without permissions. Without its native library, Hadoop starts a process (chmod) for
 * every file it creates: several in each batch, milliseconds each. Checkpoint files get the user's umask.
 */
public class PlainLocalFileSystem extends LocalFileSystem {
  public PlainLocalFileSystem() {
    super(new Raw());
  }

  private static class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) {}
  }
}
